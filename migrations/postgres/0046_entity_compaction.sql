-- Entities of earlier versions are stored anew in the background: of those up to `upto`, those up to `done` are.
create table entity_compaction (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  done bigint not null,
  upto bigint not null,
  primary key (tenant_id, name)
);
insert into entity_compaction (tenant_id, name, done, upto)
select tenant_id, 'entities', 0, max(seq) from entities group by tenant_id;
