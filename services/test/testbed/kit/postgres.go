package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Folders of PostgreSQL's programs and of libraries, in Debian.
const (
	postgresBin = "usr/lib/postgresql/*/bin/initdb"
	debianLib   = "usr/lib/x86_64-linux-gnu"
)

// Postgres is where the programs of PostgreSQL are.
type Postgres struct {
	Bin string // folder of initdb, postgres and others
	Lib string // folder of libraries that they need beside this machine's; empty for none
}

// NewPostgres returns the PostgreSQL of this machine, or unpacks Debian's packages, or finds those that were unpacked earlier. Nothing is
// installed: the package would make a database and start a server.
func NewPostgres(ctx context.Context) (Postgres, error) {
	if p, err := postgresIn("/"); err == nil {
		return Postgres{Bin: p.Bin}, nil
	}
	b, err := newBuilder()
	if err != nil {
		return Postgres{}, err
	}
	const packages = "postgresql"
	dir, err := b.cachedBySum("postgres", packages, func(dir string) error {
		fmt.Fprintln(os.Stderr, "unpacking Debian's", packages, "for tests: once")
		archives := filepath.Join(dir, "deb")
		if err := os.Mkdir(archives, 0o755); err != nil { //nolint:gosec // apt reads it as another user
			return err
		}
		if err := aptInstall(ctx, "--download-only", "-o", "Debug::NoLocking=1", "-o",
			"Dir::Cache::archives="+archives, packages); err != nil {
			return err
		}
		all, err := filepath.Glob(filepath.Join(archives, "*.deb"))
		if err != nil {
			return err
		}
		for _, file := range all {
			if err := run(ctx, dir, nil, "dpkg-deb", "-x", file, "."); err != nil {
				return err
			}
		}
		_, err = postgresIn(dir)
		return errors.Join(err, os.RemoveAll(archives))
	})
	if err != nil {
		return Postgres{}, err
	}
	return postgresIn(dir)
}

// postgresIn returns the PostgreSQL below the root of a file system.
func postgresIn(root string) (Postgres, error) {
	all, err := filepath.Glob(filepath.Join(root, postgresBin))
	if err != nil || len(all) == 0 {
		return Postgres{}, errors.Join(fmt.Errorf("no PostgreSQL below %s", root), err)
	}
	return Postgres{Bin: filepath.Dir(all[len(all)-1]), Lib: filepath.Join(root, debianLib)}, nil
}
