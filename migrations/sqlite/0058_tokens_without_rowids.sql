-- Tokens are found by their keys, so a table without rowids has a page less.

create table email_changes_next (
  _id text not null primary key,
  user text not null references users (_id) on delete cascade,
  email text not null,
  email_key text not null,
  created integer not null,
  expires integer not null
) strict, without rowid;
insert into email_changes_next select * from email_changes;
drop table email_changes;
alter table email_changes_next rename to email_changes;
create index email_changes_of_user on email_changes (user);
create index email_changes_by_key on email_changes (email_key);
create index email_changes_by_end on email_changes (expires);

create table one_time_tokens_next (
  hash text not null primary key,
  purpose text not null,
  user text not null references users (_id) on delete cascade,
  data text not null,
  expires integer not null
) strict, without rowid;
insert into one_time_tokens_next select * from one_time_tokens;
drop table one_time_tokens;
alter table one_time_tokens_next rename to one_time_tokens;
create index one_time_tokens_of_user on one_time_tokens (user);
create index one_time_tokens_by_end on one_time_tokens (expires);

create table passkey_challenges_next (
  hash text not null primary key,
  purpose text not null,
  user text references users (_id) on delete cascade,
  origin text not null,
  expires integer not null
) strict, without rowid;
insert into passkey_challenges_next select * from passkey_challenges;
drop table passkey_challenges;
alter table passkey_challenges_next rename to passkey_challenges;
create index passkey_challenges_of_user on passkey_challenges (user);
create index passkey_challenges_by_end on passkey_challenges (expires);
