// `npm run bench`: requests per second, compared with other servers. CONTRIBUTING.md lists the options.
import { parseArgs } from 'node:util'

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    /** Some rows of the table: a regular expression for their names. */
    only: { type: 'string' },
    out: { type: 'string', default: 'test/bench/results/latest.json' },
    /** PocketBase's program, for its column. */
    peer: { type: 'string' },
    /** How that flushes each commit, as `NAME=VALUE` of its environment. */
    'peer-durable': { type: 'string' },
    /** The checkout or the binary that is measured; this checkout by default. */
    program: { type: 'string' },
    /** Another checkout or binary, for a column beside it. */
    before: { type: 'string' },
    /** `postgres`: the rows on a PostgreSQL server, whose limit is pgbench. */
    engine: { type: 'string', default: 'sqlite' },
    /** Only this: the mixed load of a shop, at half of the most that the server can do. */
    shop: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '30' },
    /** Only this: ten thousand rows beside a million. It takes some minutes. */
    million: { type: 'boolean', default: false },
    /** Only this: whether the time of a sign-in tells who there is, and how long reads take beside many of them. */
    signin: { type: 'boolean', default: false },
    /** Only this: webhooks of payment providers, and checkouts. */
    payments: { type: 'boolean', default: false },
    /** Only this: what lambdas cost. */
    lambdas: { type: 'boolean', default: false },
    /** Only this: what questions to files cost, and their upload. */
    knowledge: { type: 'boolean', default: false },
    /** Only this: how late the words of models are. */
    ai: { type: 'boolean', default: false },
    /** Only this: reads of one tenant beside costly questions of another, at 100,000 rows. */
    neighbours: { type: 'boolean', default: false },
  },
})
const [rows, seconds, rounds] = [Number(options.rows), Number(options.seconds), Number(options.rounds)]

const runAlone = (name: string, ...more: string[]) =>
  Bun.spawn([process.execPath, `test/bench/${name}.ts`, ...more], { stdio: ['ignore', 'inherit', 'inherit'] }).exited

async function run(): Promise<number> {
  const alone = (['signin', 'payments', 'knowledge', 'ai', 'neighbours', 'million', 'lambdas'] as const).find(
    (name) => options[name],
  )
  if (alone) return runAlone(alone, options.engine)
  const { out, peer, program, before, engine } = options
  const only = options.only === undefined ? undefined : new RegExp(options.only)
  if (options.shop) {
    const { runShop } = await import('./shop/shop')
    return runShop({ rows, minutes: Number(options.minutes), program, engine, out })
  }
  if (engine === 'postgres') {
    const { comparePostgres } = await import('./postgres-comparison')
    await comparePostgres({ rows, seconds, rounds, only, program, before, out })
    return 0
  }
  const { compareServers } = await import('./comparison')
  await compareServers({
    rows,
    seconds,
    rounds,
    only,
    peer,
    peerDurable: options['peer-durable'],
    program,
    before,
    out,
  })
  return 0
}

process.exit(await run())
