"""The callbacks, held to the documented interfaces of the libraries: which hooks are
called when, and with what. Where a library is installed, also to the library."""

import contextlib
import dataclasses
import importlib.util
import io
import json
import os
import subprocess
import sys
import types
import unittest
from unittest import mock

from support import HERE, Case, without_time


def mend_torch():
    """Imports a part of Debian's PyTorch 1.13 that Lightning needs. An object in it is a
    default, which Python 3.11 refuses if the object has no hash."""
    import torch

    make = dataclasses.dataclass

    def dataclass(*classes, **options):
        return make(*classes, **options, unsafe_hash="TensorProperties" in [c.__name__ for c in classes])

    if torch.__version__.startswith("1.13."):
        with mock.patch.object(dataclasses, "dataclass", dataclass):
            importlib.import_module("torch.distributed.fsdp")


# Of Lightning's two packages the callback takes that which is imported already.
LIGHTNING = os.environ.get("LIGHTNING")
if importlib.util.find_spec("lightning") or importlib.util.find_spec("pytorch_lightning"):
    mend_torch()
    if LIGHTNING:
        importlib.import_module(LIGHTNING)

from benchmarkai import _trainers, huggingface, keras, lightning  # noqa: E402


def needs(*modules):
    """Skips a test where a library is not installed."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    return unittest.skipIf(missing, f"not installed: {' '.join(missing)}")


class Float:
    """As a tensor of one element."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        return self.value


class Trained(Case):
    """A test whose callbacks emit to its own file."""

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(_trainers, "emit", self.emitter(BENCHMARK_AI_FILE=self.file).emit)
        patch.start()
        self.addCleanup(patch.stop)

    def want(self, *lines):
        got = [json.loads(without_time(line)) for line in self.lines()] if os.path.exists(self.file) else []
        self.assertEqual(list(lines), got)


class Trainers(Trained):
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
        for step in (0, 1, 1, 2, 2, 3):  # steps are made of one batch or two: the first batch ends before any step
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

    @needs("transformers")
    def test_hugging_face_itself_takes_the_callback(self):
        from transformers.trainer_callback import CallbackHandler, TrainerControl, TrainerState

        handler = CallbackHandler([huggingface.Emit()], None, None, None, None)
        state, control = TrainerState(global_step=500), TrainerControl()
        handler.on_train_begin(None, state, control)
        handler.on_log(None, state, control, {"loss": 0.5})
        self.want({"loss": 0.5, "@step": 500})

    @needs("transformers", "accelerate", "torch")
    def test_a_trainer_of_hugging_face_emits_what_it_logs(self):
        import torch
        import transformers

        class Line(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(1, 1)

            def forward(self, x, labels):
                out = self.layer(x)
                return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

        data = [{"x": torch.ones(1), "labels": torch.ones(1)}] * 8
        options = transformers.TrainingArguments(
            output_dir=self.dir, num_train_epochs=2, per_device_train_batch_size=4, logging_steps=2, eval_strategy="epoch",
            save_strategy="no", report_to="none", disable_tqdm=True, use_cpu=True, seed=1,
        )
        trainer = transformers.Trainer(Line(), options, train_dataset=data, eval_dataset=data[:4], callbacks=[huggingface.Emit()])
        with contextlib.redirect_stdout(io.StringIO()):  # the trainer prints its logs
            trainer.train()
        # The history has what was logged, with the step, and the batches' order.
        history = [{"@step" if k == "step" else k: v for k, v in entry.items()} for entry in trainer.state.log_history]
        got = [json.loads(without_time(line)) for line in self.lines()]
        self.assertEqual(history, got)
        self.assertEqual([2, 2, 4, 4, 4], [line["@step"] for line in got])
        for number, name in enumerate(("loss", "eval_loss", "loss", "eval_loss", "train_loss")):
            self.assertIn(name, got[number])

    @needs("lightning", "torch")
    def test_lightning_itself_takes_the_callback(self):
        self.run_alone("lightning.pytorch")

    @needs("pytorch_lightning", "torch")
    def test_the_older_package_of_lightning_takes_the_callback(self):
        self.run_alone("pytorch_lightning")

    def run_alone(self, library):
        """Fits in a process that has imported one of the two packages of Lightning."""
        environ = {**os.environ, "LIGHTNING": library, "PYTHONWARNINGS": "ignore"}
        case = "test_trainers.InsideLightning.test_a_fit_emits_steps_epochs_validations_and_tests"
        done = subprocess.run([sys.executable, "-m", "unittest", case], cwd=HERE, env=environ, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertNotIn("skipped", done.stderr)

    @needs("keras")
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


@unittest.skipUnless(LIGHTNING, "runs in processes of other tests")
class InsideLightning(Trained):
    def test_a_fit_emits_steps_epochs_validations_and_tests(self):
        import torch

        library = sys.modules[LIGHTNING]
        self.assertTrue(issubclass(lightning.Emit, library.Callback))

        class Line(library.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(1, 1)

            def loss(self, batch, name):
                loss = torch.nn.functional.mse_loss(self.layer(batch), batch)
                self.log(name, loss)
                return loss

            def training_step(self, batch, number):
                return self.loss(batch, "loss")

            def validation_step(self, batch, number):
                self.loss(batch, "val_loss")

            def test_step(self, batch, number):
                self.loss(batch, "test_loss")

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        callback = lightning.Emit(every_n_steps=2)
        t = library.Trainer(
            accelerator="cpu", devices=1, max_epochs=2, accumulate_grad_batches=2, callbacks=[callback], logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=self.dir,
        )
        batches = torch.utils.data.DataLoader(torch.ones(8, 1), batch_size=1)  # 4 steps an epoch
        model = Line()
        t.fit(model, batches, batches)
        (validated,), (tested,) = t.validate(model, batches, verbose=False), t.test(model, batches, verbose=False)
        lines = [json.loads(without_time(line)) for line in self.lines()]
        # Validations inside the fit have no line of their own: that of the epoch has their metrics.
        self.assertEqual([2, 4, 4, 6, 8, 8, 8, 8], [line["@step"] for line in lines])
        self.assertEqual({"loss", "@step"}, set(lines[0]))
        for epoch in (lines[2], lines[5]):
            self.assertEqual({"loss", "val_loss", "@step"}, set(epoch))
        self.assertLess(lines[5]["val_loss"], lines[2]["val_loss"])
        self.assertEqual({**validated, "@step": 8}, lines[6])
        self.assertEqual({**tested, "@step": 8}, lines[7])


if __name__ == "__main__":
    unittest.main()
