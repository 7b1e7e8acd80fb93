create table vector_stores (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  seq bigint not null,
  _id text collate "C" not null,
  source text collate "C" not null,
  integration text collate "C" not null,
  scope text collate "C" not null check (scope in ('thread', 'user', 'workspace', 'tenant')),
  subject text collate "C" not null,
  model text collate "C",
  dimension bigint,
  version bigint not null,
  chunks bigint not null,
  expiration_after_days double precision,
  created bigint not null,
  expires bigint,
  primary key (tenant_id, seq),
  unique (tenant_id, _id),
  unique (tenant_id, integration, scope, subject, source)
);

create index vector_stores_of_subject on vector_stores (tenant_id, subject);
create index vector_stores_by_end on vector_stores (tenant_id, expires);

create table knowledge_files (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  store text collate "C" not null,
  name text collate "C" not null,
  metadata text collate "C" not null,
  "user" text collate "C" not null,
  chunks bigint not null,
  ready bigint not null,
  created bigint not null,
  primary key (tenant_id, _id)
);

create index knowledge_files_of_store on knowledge_files (tenant_id, store, ready, _id);
create index knowledge_files_unready on knowledge_files (tenant_id, ready, created);

create table knowledge_chunks (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  number bigint not null,
  file text collate "C" not null,
  position bigint not null,
  text text collate "C" not null,
  vector bytea,
  primary key (tenant_id, number),
  unique (tenant_id, file, position)
);

-- Numbers hardly get any smaller.
alter table knowledge_chunks alter column vector set storage external;

create table search_chunks (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  store bigint not null,
  entity bigint not null,
  words tsvector not null,
  primary key (tenant_id, store, entity)
);

create table search_files (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  file text collate "C" not null,
  primary key (tenant_id, file)
);
