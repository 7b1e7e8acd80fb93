-- Files that nothing refers to are removed, except those that are to be kept, as all earlier ones are. `unused` is since
-- when no entity names a file. Fields of the type `file` are indexed, because the index tells which entity names a file.
alter table files add column keep integer not null default 1;
alter table files add column unused integer;
update blueprints set indexing = indexing + 1 where definition like '%"file"%';
insert into field_indexes (blueprint, number, state, reason, since, used, done, upto)
select b.key, f.number, 'building', 'file', unixepoch() * 1000, unixepoch() * 1000, 0,
  (select coalesce(max(e.seq), 0) from entities e where e.blueprint = b.key)
from blueprints b
join json_each(b.definition, '$.fields') d
join fields f on f.blueprint = b.key and f.key = json_extract(d.value, '$.key')
where json_extract(d.value, '$.type') = 'file' and coalesce(json_extract(d.value, '$.indexed'), 1) <> 0
  and f.key not in (select c.key from json_each(b.definition, '$.computed') c)
on conflict (blueprint, number) do update set reason = 'file',
  state = case when state in ('retiring', 'removing') then 'building' else state end, done = 0, upto = excluded.upto;
