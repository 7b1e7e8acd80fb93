create table blocks (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  content_type text collate "C" not null check (content_type in ('content', 'html')),
  size bigint not null,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  rules text collate "C",
  description text collate "C" not null,
  content text collate "C" not null,
  shown text collate "C",
  primary key (tenant_id, _id)
);

create index blocks_by_time on blocks (tenant_id, created, _id);
create index blocks_by_name on blocks (tenant_id, name, _id);

alter table configurations add column version bigint not null default 1;
