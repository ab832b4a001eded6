package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// mechanism is the authentication of users. The password is never sent.
const mechanism = "SCRAM-SHA-256"

// authOptions returns the options that require authentication.
func authOptions(users []User) []kfake.Opt {
	if len(users) == 0 {
		return nil
	}
	opts := []kfake.Opt{kfake.EnableSASL(), kfake.EnableACLs()}
	for _, u := range users {
		userOption := func(method, name, password string) kfake.Opt { return kfake.User(method, name, password) }
		if u.Superuser {
			userOption = kfake.Superuser
		}
		opts = append(opts, userOption(mechanism, u.Name, u.Password))
	}
	return opts
}

// removeUserFiles removes the library's files about users and rights: only those of this start are valid.
func removeUserFiles(dir string) error {
	var errs []error
	for _, name := range []string{"sasl.json", "acls.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("forget the users of the last start: %w", err))
		}
	}
	return errors.Join(errs...)
}

// createACLs grants users their rights.
func (b *Broker) createACLs() error {
	req := kmsg.NewPtrCreateACLsRequest()
	for _, u := range b.users {
		for _, topic := range u.WriteTopics {
			c := kmsg.NewCreateACLsRequestCreation()
			c.ResourceType, c.ResourceName = kmsg.ACLResourceTypeTopic, topic
			c.ResourcePatternType, c.Operation = kmsg.ACLResourcePatternTypeLiteral, kmsg.ACLOperationWrite
			c.PermissionType, c.Principal, c.Host = kmsg.ACLPermissionTypeAllow, "User:"+u.Name, "*"
			req.Creations = append(req.Creations, c)
		}
	}
	if len(req.Creations) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client, err := b.client()
	if err != nil {
		return fmt.Errorf("give the broker's users their rights: %w", err)
	}
	defer client.Close()
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("give the broker's users their rights: %w", err)
	}
	var errs []error
	for _, r := range resp.Results {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			errs = append(errs, fmt.Errorf("give the broker's users their rights: %w", err))
		}
	}
	return errors.Join(errs...)
}

// client returns a client that may do everything.
func (b *Broker) client() (*kgo.Client, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(b.addr)}
	if i := slices.IndexFunc(b.users, func(u User) bool { return u.Superuser }); i >= 0 {
		auth := scram.Auth{User: b.users[i].Name, Pass: b.users[i].Password}
		opts = append(opts, kgo.SASL(auth.AsSha256Mechanism()))
	}
	return kgo.NewClient(opts...)
}
