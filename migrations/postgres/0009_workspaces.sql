create table configurations (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  key text collate "C" not null,
  public bigint not null,
  kind text collate "C" not null,
  description text collate "C" not null,
  metadata text collate "C" not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id),
  unique (tenant_id, key)
);

create table workspaces (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  logo text collate "C",
  labels text collate "C" not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create index workspaces_by_time on workspaces (tenant_id, created, _id);

create table members (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  workspace text collate "C" not null,
  "user" text collate "C" not null,
  roles text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, workspace, "user"),
  foreign key (tenant_id, workspace) references workspaces (tenant_id, _id) on delete cascade,
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create index members_by_user on members (tenant_id, "user");

create table invites (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  workspace text collate "C" not null,
  email_key text collate "C" not null,
  email text collate "C" not null,
  name text collate "C",
  roles text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, _id),
  unique (tenant_id, workspace, email_key),
  foreign key (tenant_id, workspace) references workspaces (tenant_id, _id) on delete cascade
);

create index invites_by_email on invites (tenant_id, email_key);

create table sealed (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  purpose text collate "C" not null,
  owner text collate "C" not null,
  name text collate "C" not null,
  key bigint not null,
  text text collate "C" not null,
  updated bigint not null,
  primary key (tenant_id, purpose, owner, name)
);

create index sealed_by_key on sealed (tenant_id, key);

alter table sessions add column workspace text collate "C";
alter table api_tokens add column active_workspace text collate "C";

create index tokens_of_workspace on api_tokens (tenant_id, workspace);
