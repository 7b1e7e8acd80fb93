-- A content is stored once, however many files have it. `claimed` is when an upload last needed it, and one that is
-- being removed is not used again before it is gone.
create table file_contents (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  sha256 text collate "C" not null,
  size bigint not null,
  claimed bigint not null,
  removing bigint not null,
  primary key (tenant_id, sha256)
);
create table files (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  type text collate "C" not null,
  size bigint not null,
  sha256 text collate "C" not null,
  owner text collate "C" not null,
  workspace text collate "C",
  created bigint not null,
  primary key (tenant_id, _id),
  foreign key (tenant_id, sha256) references file_contents (tenant_id, sha256)
);
create index files_by_time on files (tenant_id, created, _id);
create index files_by_owner on files (tenant_id, owner, created, _id);
create index files_by_content on files (tenant_id, sha256);
