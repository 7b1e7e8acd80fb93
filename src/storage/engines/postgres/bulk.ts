import type pg from 'pg'
import { CHANGED, inOrder, isDerived, kindOf, PROGRESS, type Table } from '../../catalogue'
import { Busy, storageError } from '../../errors'
import type { Alone, Ask, Asking, Bulk } from '../../port'
import { ask, each } from './asking'
import { ANALYZE } from './statistics'

const OWN = ['tenant_lock', 'commits', CHANGED] // the engine's
const HOLD = 10_000 // ms; a copy that stops in its tracks holds up nobody for longer
const WAIT = 5_000 // ms for other writers

// What is read is read in the order of the key, a little at a time. As long as PostgreSQL expects few rows of the tenant,
// it would read and sort all of them each time.
const BY_KEY = ['seqscan', 'bitmapscan', 'sort', 'hashjoin', 'mergejoin'].map((way) => `set local enable_${way} to off`)
const FORGOTTEN = 10_000 // notes
const FOLLOWED = "clock_timestamp() + interval '1 minute'"

/** The rows of one tenant, on a connection of its own. `tenant` says whose they are, in SQL. */
export async function openBulk(client: pg.Client, tenant: string): Promise<Bulk> {
  const start = [tenant, ...BY_KEY, "set local app.followed to 'no'"].join('; ')
  const asking: Asking = {
    ask: (sql, params) => ask(client, sql, params),
    each: (sql, rows) => each(client, sql, rows),
  }

  async function within<T>(begin: string, work: () => Promise<T>): Promise<T> {
    try {
      await client.query(begin).catch((error) => Promise.reject(storageError(error)))
      const result = await work()
      const { command } = await client.query('commit').catch((error) => Promise.reject(storageError(error)))
      if (command !== 'COMMIT') throw new Error('The transaction had failed before.')
      return result
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    }
  }

  const tables = await within(`begin; ${start}`, async () => {
    await asking.ask('insert into tenant_lock default values on conflict do nothing')
    return tablesOf(asking)
  })
  let follows = false
  // Some at a time: of all that were changed while a large tenant was copied, none takes longer than a statement may.
  const forget = async () => {
    const some = `delete from ${CHANGED} where number <= (select max(number) from (select number from ${CHANGED} order by number limit ${FORGOTTEN}) as oldest) returning true`
    while ((await within(`begin; ${start}`, () => asking.ask(some))).length);
  }
  const mark = async (ended: number | null, moved: string | null) =>
    void (await asking.ask('update tenant_lock set ended = ?, moved = ?', [ended, moved]))

  return {
    tables,
    async follow() {
      if (!follows) await forget()
      await within(`begin; ${start}`, async () => {
        const condition = follows ? 'where followed > clock_timestamp()' : ''
        const [still] = await asking.ask(`update tenant_lock set followed = ${FOLLOWED} ${condition} returning true`)
        if (!still) throw lapsed()
      })
      follows = true
    },
    // It begins with the first statement that is none of settings.
    snapshot: <T>(work: (state: { ask: Ask }) => Promise<T>) =>
      within(`begin isolation level repeatable read read only; ${start}; select`, () => work(asking)),
    alone: <T>(work: (state: Alone) => Promise<T>) =>
      within(
        `begin; ${start}; set local lock_timeout to ${WAIT}; set local statement_timeout to ${WAIT};
         set local idle_in_transaction_session_timeout to ${HOLD}; select from tenant_lock for update`,
        async () => {
          if (follows) {
            const [still] = await asking.ask('select true from tenant_lock where followed > clock_timestamp()')
            if (!still) throw lapsed()
          }
          const leave = (home?: string) => mark(Date.now(), home ?? null)
          const serve = async () => {
            await asking.ask('select advance_numbers()')
            await mark(null, null)
          }
          return work({ ...asking, leave, serve })
        },
      ),
    async settle() {
      await within(`begin; ${start}`, async () => {
        await asking.ask('select advance_numbers()')
        for (const table of PROGRESS) {
          const [[derives] = []] = await asking.ask('select to_regclass(?) is not null', [table])
          if (derives) await asking.ask(`delete from ${table}`)
        }
      })
      // As long as PostgreSQL knows nothing of the rows, it looks for a thousand of them by going through all.
      await within(`begin; ${start}; set local role none`, () => client.query(ANALYZE)).catch(() => {})
    },
    async close() {
      try {
        if (follows) {
          await within(`begin; ${start}`, () => asking.ask('update tenant_lock set followed = null'))
          await forget()
        }
      } catch {
        // It ends by itself, and who follows next begins anew.
      }
      await client.end()
    },
  }
}

const lapsed = () => new Busy('Nobody has followed the changes for a while.')

/** The tables of the bucket, from the catalogue: what of them is every engine's. */
async function tablesOf({ ask }: Asking): Promise<Table[]> {
  const columns = await ask(
    `select relname, attname, format_type(atttypid, null), array_position(indkey::int2[], attnum)
     from pg_class c join pg_attribute on attrelid = c.oid join pg_index on indrelid = c.oid and indisprimary
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and attnum > 0
       and not attisdropped and attname <> 'tenant_id' order by relname, attnum`,
  )
  const references = await ask(
    `select c.relname, f.relname from pg_constraint k join pg_class c on c.oid = conrelid join pg_class f on f.oid = confrelid
     where contype = 'f' and connamespace = current_schema()::regnamespace`,
  )
  const tables = Map.groupBy(columns as [string, string, string, number | null][], ([table]) => table)
  return inOrder(
    [...tables]
      .filter(([name]) => !OWN.includes(name) && !isDerived(name))
      .map(([name, of]) => ({
        name,
        columns: of.map(([, column, type]) => ({ name: column, kind: kindOf(type) })),
        key: of
          .filter(([, , , place]) => place !== null)
          .sort((one, other) => one[3]! - other[3]!)
          .map(([, column]) => column),
        refers: references.flatMap(([table, to]) => (table === name ? [to as string] : [])),
      })),
  )
}
