alter table users add column pending_email text collate "C";

create table email_changes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  "user" text collate "C" not null,
  email text collate "C" not null,
  email_key text collate "C" not null,
  created bigint not null,
  expires bigint not null,
  primary key (tenant_id, _id),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index email_changes_of_user on email_changes (tenant_id, "user");

create index email_changes_by_key on email_changes (tenant_id, email_key);

create index email_changes_by_end on email_changes (tenant_id, expires);
