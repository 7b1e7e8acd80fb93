create table components (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  identifier text collate "C" not null,
  path text collate "C" not null,
  builds bigint not null,
  size bigint not null,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  component_name text collate "C" not null,
  description text collate "C" not null,
  required_props text collate "C" not null,
  content text collate "C" not null,
  primary key (tenant_id, _id),
  unique (tenant_id, identifier)
);

create index components_by_time on components (tenant_id, created, _id);

create table builds (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  component text collate "C" not null,
  path text collate "C" not null,
  number bigint not null,
  js text collate "C" not null,
  css text collate "C" not null,
  primary key (tenant_id, component, path),
  foreign key (tenant_id, component) references components (tenant_id, _id) on delete cascade
);

create index builds_by_path on builds (tenant_id, path);
