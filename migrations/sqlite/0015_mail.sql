-- What was written to people.
create table mails (
  _id text not null primary key,
  recipient text not null,
  recipient_key text not null,
  template text not null,
  user text,
  data text not null,
  state text not null,
  subject text,
  text text,
  html text,
  error text,
  created integer not null,
  sent integer
) strict;

create index mails_by_time on mails (created, _id);

create index mails_to on mails (recipient_key, sent);

-- What somebody was sent to prove who they are, by its hash.
create table one_time_tokens (
  hash text not null primary key,
  purpose text not null,
  user text not null references users (_id) on delete cascade,
  data text not null,
  expires integer not null
) strict;

create index one_time_tokens_of_user on one_time_tokens (user);

create index one_time_tokens_by_end on one_time_tokens (expires);

-- Where users signed in before, as hashes.
create table devices (
  user text not null references users (_id) on delete cascade,
  device text not null,
  seen integer not null,
  primary key (user, device)
) strict;

create index devices_by_time on devices (seen);

-- Second factors; the secret is in the vault.
create table totp (
  user text not null primary key references users (_id) on delete cascade,
  confirmed integer not null,
  step integer not null
) strict;

-- What helps without the second factor, once, as hashes.
create table recovery_codes (
  hash text not null primary key,
  user text not null references users (_id) on delete cascade
) strict;

create index recovery_codes_of_user on recovery_codes (user);

-- Whom a provider of sign-ins knows, and who they are here.
create table identities (
  provider text not null,
  subject text not null,
  user text not null references users (_id) on delete cascade,
  created integer not null,
  primary key (provider, subject)
) strict;

create index identities_of_user on identities (user);
