-- The address that a user wants to have, until its confirmation code came back.
alter table users add column pending_email text;

-- Verified addresses that were given up: whoever reads mail there can take the change back for a while.
create table email_changes (
  _id text not null primary key,
  user text not null references users (_id) on delete cascade,
  email text not null,
  email_key text not null,
  created integer not null,
  expires integer not null
) strict;

create index email_changes_of_user on email_changes (user);

create index email_changes_by_key on email_changes (email_key);

create index email_changes_by_end on email_changes (expires);
