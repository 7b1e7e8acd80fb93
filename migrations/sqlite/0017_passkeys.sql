-- Public keys of authenticators, by which users sign in.
create table passkeys (
  _id text not null primary key,
  user text not null references users (_id) on delete cascade,
  credential text not null unique,
  public_key text not null,
  counter integer not null,
  host text not null,
  name text not null,
  transports text not null,
  backed_up integer not null,
  created integer not null,
  used integer
) strict;

create index passkeys_of_user on passkeys (user);

-- What an authenticator is asked to sign, by its hash, once.
create table passkey_challenges (
  hash text not null primary key,
  purpose text not null,
  user text references users (_id) on delete cascade,
  origin text not null,
  expires integer not null
) strict;

create index passkey_challenges_of_user on passkey_challenges (user);

create index passkey_challenges_by_end on passkey_challenges (expires);

alter table identities add column email text;

alter table identities add column used integer;
