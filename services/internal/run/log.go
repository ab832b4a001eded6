package run

import (
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Log are the settings of a process's log. The zero value works.
type Log struct {
	Level  string `toml:"level"`  // debug, info, warn or error; empty means info
	Format string `toml:"format"` // json or console; empty means json
}

// Validate names every setting at fault.
func (l Log) Validate() error {
	var errs []error
	if _, err := l.level(); err != nil {
		errs = append(errs, err)
	}
	switch l.Format {
	case "", "json", "console":
	default:
		errs = append(errs, fmt.Errorf("log.format: %q, want json or console", l.Format))
	}
	return errors.Join(errs...)
}

// New returns a log that is written to w, one line for each entry, at once.
func (l Log) New(w io.Writer) (*zap.Logger, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	level, _ := l.level()
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(cfg)
	if l.Format == "console" {
		encoder = zapcore.NewConsoleEncoder(cfg)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)), nil
}

func (l Log) level() (zapcore.Level, error) {
	if l.Level == "" {
		return zapcore.InfoLevel, nil
	}
	level, err := zapcore.ParseLevel(l.Level)
	if err != nil || level > zapcore.ErrorLevel {
		return 0, fmt.Errorf("log.level: %q, want debug, info, warn or error", l.Level)
	}
	return level, nil
}
