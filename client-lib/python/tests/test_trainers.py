"""The callbacks, held to the documented interfaces of the libraries: which hooks are
called when, and with what. Where a library is installed, also to the library."""

import importlib.util
import json
import os
import types
import unittest
from unittest import mock

from support import Case, without_time

from benchmarkai import _trainers, huggingface, keras, lightning


class Float:
    """As a tensor of one element."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        return self.value


class Trainers(Case):
    def setUp(self):
        super().setUp()
        patch = mock.patch.object(_trainers, "emit", self.emitter(BENCHMARK_AI_FILE=self.file).emit)
        patch.start()
        self.addCleanup(patch.stop)

    def want(self, *lines):
        got = [json.loads(without_time(line)) for line in self.lines()] if os.path.exists(self.file) else []
        self.assertEqual(list(lines), got)

    def test_keras_emits_epochs_batches_and_evaluations(self):
        c = keras.Emit(every_n_batches=2)
        c.set_params({"epochs": 1})
        c.on_train_begin()
        c.on_epoch_begin(0)
        for batch in range(3):
            c.on_train_batch_begin(batch)
            c.on_train_batch_end(batch, {"loss": Float(0.5)})
        c.on_test_begin()
        c.on_test_end({"loss": 0.75})
        c.on_epoch_end(0, {"loss": 0.25, "val_loss": Float(0.75)})
        c.on_train_end()
        c.on_test_end({"loss": 0.75})
        self.want(
            {"batch_loss": 0.5, "@step": 2},
            {"loss": 0.25, "val_loss": 0.75, "@step": 0},
            {"test_loss": 0.75, "@step": 0},
        )

    def test_keras_without_logs_emits_nothing(self):
        c = keras.Emit(1)
        c.on_train_batch_end(0)
        c.on_epoch_end(0, {})
        self.want()

    def trainer(self, **fields):
        state = types.SimpleNamespace(fn=fields.pop("fn", "fit"))
        usual = {"is_global_zero": True, "global_step": 4, "callback_metrics": {"loss": Float(0.5)}, "state": state}
        return types.SimpleNamespace(**{**usual, **fields})

    def test_lightning_emits_epochs_steps_validations_and_tests(self):
        c = lightning.Emit(every_n_steps=2)
        for step in (1, 2, 2, 3):  # the second step is made of two batches
            c.on_train_batch_end(self.trainer(global_step=step), None, None, None, 0)
        c.on_validation_end(self.trainer(), None)
        c.on_train_epoch_end(self.trainer(), None)
        c.on_validation_end(self.trainer(fn="validate"), None)
        c.on_test_end(self.trainer(callback_metrics={"test_loss": Float(0.75)}), None)
        line = {"loss": 0.5, "@step": 4}
        self.want({"loss": 0.5, "@step": 2}, line, line, {"test_loss": 0.75, "@step": 4})

    def test_lightning_emits_from_one_process_of_several(self):
        lightning.Emit().on_train_epoch_end(self.trainer(is_global_zero=False), None)
        self.want()

    def test_hugging_face_emits_what_is_logged_and_a_number(self):
        c = huggingface.Emit()
        state = types.SimpleNamespace(is_world_process_zero=True, global_step=500)
        c.on_step_end(None, state, None)
        c.on_log(None, state, None, logs={"loss": 0.5, "epoch": 1, "note": "x", "list": [1], "number": "5"}, model=None)
        c.on_log(None, state, None, logs={"note": "x"})
        c.on_log(None, types.SimpleNamespace(is_world_process_zero=False, global_step=500), None, logs={"loss": 0.5})
        self.want({"loss": 0.5, "epoch": 1, "@step": 500})

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_hugging_face_itself_takes_the_callback(self):
        from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState

        handler = CallbackHandler([huggingface.Emit()], None, None, None, None)
        state, control = TrainerState(global_step=500), TrainerControl()
        handler.on_train_begin(None, state, control)
        handler.on_log(None, state, control, {"loss": 0.5})
        self.want({"loss": 0.5, "@step": 500})

    @unittest.skipUnless(importlib.util.find_spec("keras"), "keras is not installed")
    def test_keras_itself_takes_the_callback(self):
        import keras as real
        import numpy

        model = real.Sequential([real.layers.Input((1,)), real.layers.Dense(1)])
        model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
        x = numpy.ones((8, 1), "float32")
        callback = keras.Emit(every_n_batches=1)
        history = model.fit(x, x, epochs=2, batch_size=4, validation_data=(x, x), verbose=0, callbacks=[callback]).history
        loss, mae = model.evaluate(x, x, verbose=0, callbacks=[callback])
        lines = [json.loads(without_time(line)) for line in self.lines()]
        self.assertEqual([1, 2, 0, 3, 4, 1, 1], [line["@step"] for line in lines])
        self.assertEqual({"batch_loss", "batch_mae", "@step"}, set(lines[0]))
        for epoch in range(2):
            want = {"@step": epoch, **{name: values[epoch] for name, values in history.items()}}
            self.assertEqual(want, lines[2 + 3 * epoch])
        self.assertEqual({"test_loss": loss, "test_mae": mae, "@step": 1}, lines[-1])


if __name__ == "__main__":
    unittest.main()
