import pg from 'pg'
import { ConfigError } from '../../../core/config-error'
import { report } from '../../../core/log'
import { pending } from '../../port'
import { distribute, isThere, TRIGGERS } from './citus'
import isolate from './isolate.sql' with { type: 'text' }

/** As whom every transaction runs: a role that owns nothing, so that no policy lets it see another tenant's rows. */
export const ROLE = 'atoll_app'

/** What tenants' buckets are called. */
const DATA = /^atoll_b\d+$/

type Client = Pick<pg.ClientBase, 'query'>

const made = `do $$
begin
  if not exists (select from pg_roles where rolname = '${ROLE}') then
    create role ${ROLE} nologin nosuperuser nobypassrls;
  end if;
  if not pg_has_role('${ROLE}', 'member') then
    grant ${ROLE} to current_user;
  end if;
exception when duplicate_object or unique_violation then null; -- another process was faster
end
$$`

/**
 * Brings a bucket, a schema whose tables many tenants share, to the version of this program. That version is the comment
 * on the schema, as that of an SQLite file is its `user_version`.
 * @throws when the bucket is newer, or has to be changed by a role that may not, or the database can't keep every text
 */
export async function migrate(client: Client, bucket: string, migrations: string[]) {
  const [schema, name] = [pg.escapeIdentifier(bucket), pg.escapeLiteral(bucket)]
  const before = await versionOf(client, name)
  if (!pending(before, migrations).length) return
  try {
    // Roles are the cluster's, not the database's, and made by one process at a time.
    await client.query(`begin; select pg_advisory_xact_lock(hashtext('atoll')); ${made}; commit; begin;
      select pg_advisory_xact_lock(hashtext('atoll')); create schema if not exists ${schema};
      set local search_path to ${schema}`)
    await refuseEncoding(client)
    const left = pending(await versionOf(client, name), migrations)
    if (left.length) {
      const triggers = (await isThere(client)) ? TRIGGERS : ''
      await client.query(
        `${triggers}${left.join(';')}; ${isolate}; comment on schema ${schema} is '${migrations.length}'`,
      )
    }
    await client.query('commit')
    // The registry stays where servers look for it.
    if (!before && DATA.test(bucket))
      await distribute(client, bucket).catch((error) => report('BUCKET_NOT_DISTRIBUTED', { bucket, cause: error }))
  } catch (error) {
    await client.query('rollback').catch(() => {})
    if ((error as { code?: string }).code !== '42501') throw error // insufficient_privilege
    throw new ConfigError(
      `The role of ATOLL_DATABASE_URL may not prepare the database: ${(error as Error).message}. Run "atoll postgres init" once by the URL of its owner.`,
      { cause: error },
    )
  }
}

async function versionOf(client: Client, name: string) {
  const { rows } = await client.query(
    `select obj_description(oid, 'pg_namespace') as version,
       (select rolsuper or rolbypassrls from pg_roles where rolname = '${ROLE}') as unbound
     from pg_namespace where nspname = ${name}`,
  )
  if (rows[0]?.unbound) throw new ConfigError(`No policy binds the role ${ROLE}: tenants would see each other.`)
  return Number(rows[0]?.version ?? 0)
}

async function refuseEncoding(client: Client) {
  const { rows } = await client.query("select current_setting('server_encoding') as encoding")
  const { encoding } = rows[0] as { encoding: string }
  if (encoding !== 'UTF8')
    throw new ConfigError(`The database keeps texts as ${encoding}. Make another one, with the encoding UTF8.`)
}
