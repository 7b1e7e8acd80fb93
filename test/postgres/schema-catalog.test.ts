import { describe, expect, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { queryDatabase } from '../fakes/postgres'
import { errorOf } from '../rejections'
import { databaseUrl, postgres } from '../storage/engines'
import { describeTables, schemaCases } from '../storage/schema-facts'

const POSTGRES_TYPES: Record<string, string> = { integer: 'bigint', real: 'double precision', blob: 'bytea' }
/** Columns that are text in SQLite and jsonb in PostgreSQL. */
const JSONB_COLUMNS = ['entities: keys jsonb not null']
/** The tables of the engine itself and its own full-text tables. */
const ENGINE_TABLES = ['tenant_lock', 'commits', 'changed_rows', 'search_words', 'search_chunks']

/** The facts about the tables of the code on PostgreSQL, where each key begins with the tenant. */
const expectedFacts = (tables: Parameters<typeof describeTables>[0]) =>
  describeTables(tables)
    .map((fact) =>
      fact
        .replace(/^(\w+: \w+) (integer|real|blob)\b/, (_, column, type) => `${column} ${POSTGRES_TYPES[type]}`)
        .replace(/((?:primary key|unique|index \w+|foreign key|-> \w+) \()/g, '$1tenant_id, '),
    )
    .map((fact) => (fact === 'entities: keys text not null' ? JSONB_COLUMNS[0]! : fact))
    .concat(tables.map((table) => `${tableName(table)}: tenant_id uuid not null`))
    .sort()
const tableName = (table: object) => (table as Record<symbol, string>)[Symbol.for('drizzle:Name')]!

async function readCatalog(url: string, bucket: string) {
  const rows = await queryDatabase(
    url,
    `with t as (select oid, relname as name from pg_class where relkind in ('r', 'p') and relnamespace = $1::text::regnamespace),
      named as (select c.oid, c.conrelid, c.contype, c.confrelid, c.confdeltype,
        (select string_agg(attname, ', ' order by n) from unnest(c.conkey) with ordinality k (at, n)
          join pg_attribute on attrelid = c.conrelid and attnum = at) as own,
        (select string_agg(attname, ', ' order by n) from unnest(c.confkey) with ordinality k (at, n)
          join pg_attribute on attrelid = c.confrelid and attnum = at) as other
        from pg_constraint c)
    select t.name, attname || ' ' || format_type(atttypid, null) || case when attnotnull then ' not null' else '' end
      || case when atttypid = 'text'::regtype and attcollation <> '"C"'::regcollation then ', sorted unlike SQLite' else '' end as fact
      from t join pg_attribute on attrelid = t.oid where attnum > 0 and not attisdropped
    union all select t.name, case contype when 'p' then 'primary key' else 'unique' end || ' (' || own || ')'
      from t join named on conrelid = t.oid where contype in ('p', 'u')
    union all select t.name, 'foreign key (' || own || ') -> ' || confrelid::regclass::text || ' (' || other || ') on delete '
        || case confdeltype when 'c' then 'cascade' when 'a' then 'no action' else confdeltype::text end
      from t join named on conrelid = t.oid where contype = 'f'
    union all select t.name, case when indisunique then 'unique ' else '' end || 'index ' || c.relname || ' ('
        || (select string_agg(attname, ', ' order by attnum) from pg_attribute where attrelid = c.oid) || ')'
      from t join pg_index i on i.indrelid = t.oid join pg_class c on c.oid = i.indexrelid
      where not exists (select from pg_constraint where conindid = c.oid)`,
    [bucket],
  )
  return rows
    .filter(({ name }) => !ENGINE_TABLES.includes(name))
    .map(({ name, fact }) => `${name}: ${fact.replace(`-> ${bucket}.`, '-> ')}`)
    .sort()
}

describe.skipIf(!databaseUrl)('the schema of a bucket', () => {
  test.each(schemaCases)('a bucket has exactly the tables of a %s', async (name, tables, migrations) => {
    const engine = postgres()
    const bucket = `catalogue_${name}`
    await engine.open({ tenant: 'a', file: '', identity: crypto.randomUUID(), bucket }, migrations)
    expect(await readCatalog(databaseUrl!, bucket)).toEqual(expectedFacts(tables))
    await engine.close()
  })

  test('a database with the encoding LATIN1 is refused, and no schema is created', async () => {
    await queryDatabase(databaseUrl!, "create database latin encoding 'LATIN1' template template0 locale 'C'")
    const url = new URL(databaseUrl!)
    url.pathname = '/latin'
    const engine = postgres(`${url}`)
    const opened = engine.open({ tenant: 'a', file: '', bucket: 'latin' }, tenantMigrations)
    expect((await errorOf(opened)).message).toContain('The database encoding is LATIN1.')
    expect(await queryDatabase(`${url}`, "select from pg_namespace where nspname = 'latin'")).toEqual([])
    await engine.close()
  })

  test('every table of a bucket has a row policy, forced upon its owner but for words, and is not owned by atoll_app', async () => {
    const engine = postgres()
    await engine.open({ tenant: 'a', file: '', identity: crypto.randomUUID(), bucket: 'policies' }, tenantMigrations)
    const tables = await queryDatabase(
      databaseUrl!,
      `select relname, relrowsecurity as bound, relforcerowsecurity as forced, pg_get_userbyid(relowner) as owner,
        (select string_agg(polname || ' ' || pg_get_expr(polqual, polrelid), ',') from pg_policy where polrelid = c.oid) as policy
       from pg_class c where relkind in ('r', 'p') and relnamespace = 'policies'::regnamespace`,
    )
    expect(tables.length).toBeGreaterThan(10)
    for (const { relname, bound, forced, owner, policy } of tables) {
      expect([relname, bound, forced, policy]).toEqual([
        relname,
        true,
        relname !== 'search_words', // a view of the owner reads it
        `own_rows (tenant_id = (current_setting('app.tenant'::text))::uuid)`,
      ])
      expect(owner).not.toBe('atoll_app')
    }
    const [role] = await queryDatabase(
      databaseUrl!,
      "select rolsuper, rolbypassrls, rolcanlogin from pg_roles where rolname = 'atoll_app'",
    )
    expect(role).toEqual({ rolsuper: false, rolbypassrls: false, rolcanlogin: false })
    await engine.close()
  })
})
