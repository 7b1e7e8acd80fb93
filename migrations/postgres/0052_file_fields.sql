-- Files that nothing refers to are removed, except those that are to be kept, as all earlier ones are. `unused` is since
-- when no entity names a file. Fields of the type `file` are indexed, because the index tells which entity names a file.
-- The rows of all tenants are changed here, for which their changes are not captured. The policies are in force again after
-- the migrations.
set local app.followed to 'no';
alter table blueprints no force row level security;
alter table entities no force row level security;
alter table fields no force row level security;
alter table field_indexes no force row level security;
alter table files add column keep bigint not null default 1;
alter table files add column unused bigint;
update blueprints set indexing = indexing + 1 where definition like '%"file"%';
insert into field_indexes as x (tenant_id, blueprint, number, state, reason, since, used, done, upto)
select b.tenant_id, b.key, f.number, 'building', 'file',
  (extract(epoch from now()) * 1000)::bigint, (extract(epoch from now()) * 1000)::bigint, 0,
  (select coalesce(max(e.seq), 0) from entities e where e.tenant_id = b.tenant_id and e.blueprint = b.key)
from blueprints b
cross join lateral jsonb_array_elements(b.definition::jsonb -> 'fields') d
join fields f on f.tenant_id = b.tenant_id and f.blueprint = b.key and f.key = d ->> 'key'
where d ->> 'type' = 'file' and coalesce(d ->> 'indexed', 'true') = 'true'
  and not coalesce((b.definition::jsonb -> 'computed') ? (d ->> 'key'), false)
on conflict (tenant_id, blueprint, number) do update set reason = 'file',
  state = case when x.state in ('retiring', 'removing') then 'building' else x.state end, done = 0, upto = excluded.upto;
