import pg from 'pg'
import { ConfigError } from '../../../core/config-error'
import { logError } from '../../../core/log'
import { listPendingMigrations } from '../../port'
import { ALLOW_TRIGGERS_SQL, distributeBucket, hasCitus } from './citus'
import isolate from './isolate.sql' with { type: 'text' }

/** The role of every transaction. It owns nothing, so no policy lets it see another tenant's rows. */
export const TENANT_ROLE = 'atoll_app'

/** The names of tenants' buckets. */
const TENANT_BUCKET = /^atoll_b\d+$/

type Queryable = Pick<pg.ClientBase, 'query'>

const CREATE_ROLE_SQL = `do $$
begin
  if not exists (select from pg_roles where rolname = '${TENANT_ROLE}') then
    create role ${TENANT_ROLE} nologin nosuperuser nobypassrls;
  end if;
  if not pg_has_role('${TENANT_ROLE}', 'member') then
    grant ${TENANT_ROLE} to current_user;
  end if;
exception when duplicate_object or unique_violation then null; -- another process was faster
end
$$`

// Migrations change the rows of all tenants, also when the owner of the tables is no superuser. No change of theirs is
// captured. The policies are in force again at the end of the same transaction.
const LIFT_POLICIES_SQL = `set local app.followed to 'no';
do $$
declare
  one regclass;
begin
  for one in
    select oid from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
  loop
    execute format('alter table %s no force row level security', one);
  end loop;
end
$$`

/**
 * Migrates a bucket, a schema whose tables many tenants share, to the version of this program. The version is the
 * comment on the schema, as it is the `user_version` of an SQLite file.
 * @throws 500 DATABASE_TOO_NEW when the bucket is newer
 * @throws ConfigError when the role lacks privileges or bypasses row-level security, or the encoding is not UTF8
 */
export async function migrateBucket(client: Queryable, bucket: string, migrations: string[]) {
  const [schema, name] = [pg.escapeIdentifier(bucket), pg.escapeLiteral(bucket)]
  const version = await readVersion(client, name)
  if (!listPendingMigrations(version, migrations).length) return
  try {
    // Roles belong to the cluster, not to the database; only one process at a time may create them.
    await client.query(`begin; select pg_advisory_xact_lock(hashtext('atoll')); ${CREATE_ROLE_SQL}; commit; begin;
      select pg_advisory_xact_lock(hashtext('atoll')); create schema if not exists ${schema};
      set local search_path to ${schema}`)
    await assertUtf8(client)
    const remaining = listPendingMigrations(await readVersion(client, name), migrations)
    if (remaining.length) {
      const triggers = (await hasCitus(client)) ? ALLOW_TRIGGERS_SQL : ''
      await client.query(
        `${triggers}${LIFT_POLICIES_SQL};${remaining.join(';')}; ${isolate}; comment on schema ${schema} is '${migrations.length}'`,
      )
    }
    await client.query('commit')
    // Only tenants' buckets are distributed. The registry stays on the node to which servers connect.
    if (!version && TENANT_BUCKET.test(bucket))
      await distributeBucket(client, bucket).catch((error) =>
        logError('BUCKET_NOT_DISTRIBUTED', { bucket, cause: error }),
      )
  } catch (error) {
    await client.query('rollback').catch(() => {}) // the first error counts
    if ((error as { code?: string }).code !== '42501') throw error // insufficient_privilege
    throw new ConfigError(
      `The role of ATOLL_DATABASE_URL lacks the privileges to prepare the database: ${(error as Error).message}. Run "atoll postgres init" once with the URL of the owner.`,
      { cause: error },
    )
  }
}

/** Returns the version of a bucket; 0 when there is none. */
export const readBucketVersion = (client: Queryable, bucket: string): Promise<number> =>
  readVersion(client, pg.escapeLiteral(bucket))

async function readVersion(client: Queryable, name: string) {
  const { rows } = await client.query(
    `select obj_description(oid, 'pg_namespace') as version,
       (select rolsuper or rolbypassrls from pg_roles where rolname = '${TENANT_ROLE}') as unbound
     from pg_namespace where nspname = ${name}`,
  )
  if (rows[0]?.unbound)
    throw new ConfigError(`The role ${TENANT_ROLE} bypasses row-level security: tenants would see each other's data.`)
  return Number(rows[0]?.version ?? 0)
}

async function assertUtf8(client: Queryable) {
  const { rows } = await client.query("select current_setting('server_encoding') as encoding")
  const { encoding } = rows[0] as { encoding: string }
  if (encoding !== 'UTF8')
    throw new ConfigError(`The database encoding is ${encoding}. Create a database with the encoding UTF8.`)
}
