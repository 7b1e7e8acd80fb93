-- A deployment is one row: what it consists of is in `manifest`, and the files' contents are in file_contents. The one
-- with the highest activation is active.
create table site_deployments (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  activation bigint not null,
  spa bigint not null,
  files bigint not null,
  bytes bigint not null,
  deployed_by text collate "C" not null,
  created bigint not null,
  manifest text collate "C" not null,
  primary key (tenant_id, _id)
);
