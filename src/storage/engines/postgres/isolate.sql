-- Runs after every migration of a bucket: no table can be without its policy.
create table if not exists tenant_lock (
  tenant_id uuid primary key default current_setting('app.tenant')::uuid,
  -- When the tenant was ended, in ms. Its rows are kept, but not served.
  ended bigint,
  -- Where the tenant is now, when it was moved instead of ended.
  moved text collate "C",
  -- Until when changes are captured.
  followed timestamptz
);

-- The keys of changed rows, while changes are captured.
create table if not exists changed_rows (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  number bigint generated always as identity,
  name text collate "C" not null,
  key text collate "C" not null,
  primary key (tenant_id, number)
);

-- The arguments are the name of the table, and then the columns of its primary key.
create or replace function note_change() returns trigger language plpgsql as $$
begin
  if exists (select from tenant_lock where tenant_id = current_setting('app.tenant')::uuid and followed > now()) then
    insert into changed_rows (name, key)
    select distinct tg_argv[0], (select jsonb_agg(state ->> part order by n)::text
        from unnest(tg_argv[1:]) with ordinality as parts (part, n))
      from (values (to_jsonb(old)), (to_jsonb(new))) as states (state) where state is not null;
  end if;
  return null;
end
$$;

-- The keys of commits, by which a commit whose answer was lost is recognized.
create table if not exists commits (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  key uuid not null,
  made timestamptz not null default now(),
  primary key (tenant_id, key)
);

-- Notifies other processes of a change at its commit.
create or replace function tell_others() returns trigger language plpgsql as $$
begin
  perform pg_notify('atoll', new.tenant_id::text);
  return null;
end
$$;

-- Copied rows have numbers that no sequence of the bucket has assigned: the next numbers must come after them. Only the
-- owner may set a sequence, and while nothing else takes a number. A gap is left, so that this is rarely necessary.
create or replace function advance_numbers() returns void language plpgsql security definer as $$
declare
  one record;
  most bigint;
  next bigint;
begin
  for one in
    select attrelid::regclass as tab, attname as col, pg_get_serial_sequence(attrelid::regclass::text, attname) as seq
    from pg_attribute join pg_class c on c.oid = attrelid
    where c.relnamespace = current_schema()::regnamespace and attidentity = 'd' order by 1
  loop
    execute format('select max(%I) from %s', one.col, one.tab) into most;
    execute format('select last_value from %s', one.seq) into next;
    continue when most is null or most < next;
    execute format('lock table %s in share row exclusive mode', one.tab);
    execute format('select setval(%L, greatest(last_value, %s) + 10000) from %s', one.seq, most, one.seq);
  end loop;
end
$$;

do $$
begin
  execute format('alter function advance_numbers() set search_path to %I', current_schema());
end
$$;

do $$
declare
  one regclass;
begin
  for one in
    select oid from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
  loop
    execute format('alter table %s enable row level security, force row level security', one);
    execute format('drop policy if exists own_rows on %s', one);
    -- Without statistics, the planner expects a 200th of a table for each tenant. With them, it would expect a single row
    -- of a tenant that has grown since the last analysis, and then any index looks as good as the primary key.
    execute format('alter table %s alter column tenant_id set statistics 0', one);
    execute format('create policy own_rows on %s using (tenant_id = current_setting(''app.tenant'')::uuid)', one);
  end loop;
  -- Servers set at the beginning of a transaction that no changes are captured, which makes the trigger almost free.
  for one in
    select oid from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
      and relname not in ('tenant_lock', 'commits', 'changed_rows') and not starts_with(relname, 'search_')
  loop
    execute format('create or replace trigger note_change after insert or update or delete on %s for each row
      when (current_setting(''app.followed'', true) is distinct from ''no'') execute function note_change(%s)', one,
      (select concat_ws(', ', quote_literal(relname), string_agg(quote_literal(attname), ', ' order by n))
        from pg_class c, pg_index i cross join unnest(indkey::int2[]) with ordinality as parts (part, n)
          join pg_attribute on attrelid = indrelid and attnum = part and attname <> 'tenant_id'
        where c.oid = one and indrelid = one and indisprimary group by relname));
  end loop;
  -- The statistics of a column need as many rows as the column with the most. For these, 30,000 rows are enough.
  if to_regclass('entity_index') is not null then
    alter table entity_index alter column field set statistics -1;
  end if;
  -- No condition compares whole keys, and sorting 30,000 of them for statistics takes most of the time of an analysis.
  if to_regclass('entities') is not null then
    alter table entities alter column keys set statistics 0;
  end if;
  if to_regclass('versions') is not null then
    create or replace trigger tell_others after insert or update on versions
      for each row execute function tell_others();
  end if;
  execute format('grant usage on schema %I to atoll_app', current_schema());
  execute format('grant select, insert, update, delete on all tables in schema %I to atoll_app', current_schema());
  if to_regclass('searched_words') is not null then
    alter table search_words no force row level security;
    revoke insert, update, delete on searched_words from atoll_app;
  end if;
  execute format('grant usage on all sequences in schema %I to atoll_app', current_schema());
  execute format('grant execute on all functions in schema %I to atoll_app', current_schema());
end
$$;
