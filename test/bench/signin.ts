// `bun test/bench/signin.ts [sqlite|postgres]`: whether the time of a refused sign-in tells who there is, how many sign in per
// second beside what the parameters of before (64 MiB) allowed, and how long reads take beside twenty people who do so all the time.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { passwordCost } from '../../src/accounts/password-cost'
import { apiCaller, PASSWORD, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { createTempFolder } from '../temp-folder'
import { measure } from './load'
import { product, productsBlueprint } from './sample-data'

const { memoryCost, timeCost } = passwordCost
const PASSWORD_COST = { algorithm: 'argon2id', memoryCost, timeCost } as const
const USERS_PER_KIND = 10 // of a kind, who fail fewer times than would hold them back
const ATTEMPTS_PER_USER = 8
const CONCURRENT_USERS = 20
const SECONDS_PER_ROUND = 4
const ROUNDS = 5

/** With which passwords were hashed before, and a KiB, for without it they are replaced at the first sign-in. */
const FORMER_COST = { algorithm: 'argon2id', memoryCost: 65_537, timeCost: 2 } as const

/** Whom a sign-in may mean, and how their password is kept. */
const passwordHashByKind: Record<string, (() => Promise<string | null>) | undefined> = {
  'nobody of this name': undefined,
  'somebody of this name': () => Bun.password.hash(PASSWORD, PASSWORD_COST),
  'somebody of this address': () => Bun.password.hash(PASSWORD, PASSWORD_COST),
  'without a password': async () => null,
  'with a second factor': () => Bun.password.hash(PASSWORD, PASSWORD_COST),
  'a password of less cost': () => Bun.password.hash(PASSWORD, { ...PASSWORD_COST, memoryCost: 9_216 }),
  'a password of much less': () => Bun.password.hash(PASSWORD, { ...PASSWORD_COST, memoryCost: 2_048, timeCost: 3 }),
  // These show: they stay until their users choose a new password.
  'a password of more cost': () => Bun.password.hash(PASSWORD, FORMER_COST),
}
const KIND_NAMES = Object.keys(passwordHashByKind)
const nameOf = (kind: string, n: number) => `${kind.replaceAll(' ', '-')}-${n}`
const typedName = (kind: string, n: number) => nameOf(kind, n) + (kind.endsWith('address') ? '@bench.test' : '')
const medianOf = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1]!

/** A process of its own makes the tenant, because the settings are read once. */
async function fillTenant() {
  await import('../../src/app')
  const { registerUser } = await import('../../src/accounts/users/users')
  const { users } = await import('../../src/accounts/tables')
  const { totp } = await import('../../src/accounts/totp/tables')
  const { eq } = await import('drizzle-orm')
  const { createTenant } = await import('../../src/tenancy/tenants')
  const { databases } = await import('../../src/tenancy/databases')
  const { setOperatorLimits } = await import('../../src/limits/rate-limits')
  const tenant = await createTenant('bench', ['127.0.0.1'])
  const createUser = async (username: string, password: string | null, roles = ['user']) => {
    const { _id } = await registerUser(tenant, { username, email: `${username}@bench.test` }, roles)
    await tenant.write((tx) => tx.update(users).set({ password }).where(eq(users._id, _id)).run())
    return _id
  }
  for (const [kind, hashed] of Object.entries(passwordHashByKind)) {
    const password = await hashed?.()
    for (let n = 0; n < USERS_PER_KIND && password !== undefined; n++) {
      const user = await createUser(nameOf(kind, n), password)
      if (kind.includes('factor'))
        await tenant.write((tx) => tx.insert(totp).values({ user, confirmed: true, step: 0 }))
    }
  }
  const password = await Bun.password.hash(PASSWORD, PASSWORD_COST)
  await createUser('root', password, ['admin', 'user'])
  for (let n = 0; n < CONCURRENT_USERS; n++) await createUser(`reader-${n}`, password)
  const former = await Bun.password.hash(PASSWORD, FORMER_COST)
  for (let n = 0; n < CONCURRENT_USERS; n++) await createUser(`former-${n}`, former)
  // Few users read as fast as they can.
  await setOperatorLimits(tenant.tenant, { users: { reads: 10_000_000 } })
  await databases.close()
  process.exit()
}
if (process.argv[2] === 'fill') await fillTenant()

const folder = createTempFolder('signin')
const database = process.argv[2] === 'postgres' ? await startPostgres() : undefined
const env: Record<string, string> = {
  ...{ ATOLL_TENANTS: join(folder, 'tenants'), ATOLL_TRUST_PROXY: 'on' },
  ...(database && { ATOLL_DATABASE_URL: database.url }),
}
const filled = Bun.spawn([process.execPath, import.meta.path, 'fill'], {
  env: { ...process.env, ...env },
  stdio: ['ignore', 'inherit', 'inherit'],
})
if (await filled.exited) throw new Error('It could not be filled.')
const report: Record<string, unknown> = { at: new Date().toISOString(), engine: database ? 'postgres' : 'sqlite' }
{
  await using server = await startAtoll({ at: folder, env })
  let visitors = 0
  /** A sign-in from an address that nobody came from before: how it ends, and after how many ms. */
  const signIn = async (username: string, password: string) => {
    const visitor = visitors++
    const headers = {
      'content-type': 'application/json',
      'x-forwarded-for': `198.18.${visitor >> 8}.${visitor & 255}`,
      'x-forwarded-host': '127.0.0.1',
    }
    const body = JSON.stringify({ username, password, authType: 'oauth' })
    const began = performance.now()
    const response = await fetch(`${server.url}/api/signin`, { method: 'POST', headers, body })
    const text = await response.text()
    return { status: response.status, text, ms: performance.now() - began }
  }

  const times: Record<string, number[]> = Object.fromEntries(KIND_NAMES.map((kind) => [kind, []]))
  for (let time = 0; time < ATTEMPTS_PER_USER; time++)
    for (let n = 0; n < USERS_PER_KIND; n++)
      // In another order each time, for one attempt may slow down the next.
      for (const kind of KIND_NAMES.toSorted(() => Math.random() - 0.5)) {
        const { status, ms } = await signIn(typedName(kind, n), 'wrong horse')
        if (status !== 401) throw new Error(`${kind}: ${status}`)
        times[kind]!.push(ms)
      }
  const nobody = medianOf(times[KIND_NAMES[0]!]!)
  const refused: Record<string, object> = {}
  for (const kind of KIND_NAMES) {
    const median = medianOf(times[kind]!)
    const differs = median / nobody - 1
    refused[kind] = { median, differs }
    const percent = `${(differs * 100).toFixed(1).padStart(6)} %`
    console.log(`refused, ${kind.padEnd(26)} median ${median.toFixed(1).padStart(6)} ms ${percent}`)
  }
  report.refused = refused

  /** How many of these people sign in per second, when all of them do nothing else. */
  const perSecondOf = async (people: string) => {
    let [signedIn, goesOn] = [0, true]
    const began = performance.now()
    const all = Array.from({ length: CONCURRENT_USERS }, async (_, n) => {
      while (goesOn) if ((await signIn(`${people}-${n}`, PASSWORD)).status === 200) signedIn++
    })
    await Bun.sleep(SECONDS_PER_ROUND * 1000)
    goesOn = false
    await Promise.all(all)
    return signedIn / ((performance.now() - began) / 1000)
  }
  const rates = { now: [] as number[], former: [] as number[] }
  await perSecondOf('reader')
  for (let round = 0; round < ROUNDS; round++) {
    rates.former.push(await perSecondOf('former'))
    rates.now.push(await perSecondOf('reader'))
  }
  const [fast, slow] = [medianOf(rates.now), medianOf(rates.former)]
  report.signIns = { perSecond: fast, perSecondWith64MiB: slow, times: fast / slow }
  console.log(
    `sign-ins: ${fast.toFixed(1)} per second, with 64 MiB ${slow.toFixed(1)}: ${(fast / slow).toFixed(1)} times as many`,
  )

  const root = JSON.parse((await signIn('root', PASSWORD)).text).payload.token as string
  const headers = { authorization: `Bearer ${root}`, 'content-type': 'application/json' }
  const call = apiCaller(server.url, headers)
  await call('POST', '/api/blueprints', productsBlueprint)
  const path = `/api/blueprints/${productsBlueprint.key}/entities`
  const ids: string[] = []
  for (let n = 0; n < 500; n++) ids.push((await call('POST', path, product(n))).body.identifier)
  const paths = ids.map((id) => `${path}/${id}`)
  const reads = () =>
    measure({ url: server.url, headers, method: 'GET', paths, connections: 4, seconds: SECONDS_PER_ROUND })
  const [alone, beside] = [[] as number[], [] as number[]]
  let signedIn = 0
  await reads()
  for (let round = 0; round < ROUNDS; round++) {
    alone.push((await reads()).p99)
    let goesOn = true
    const people = Array.from({ length: CONCURRENT_USERS }, async (_, n) => {
      while (goesOn) if ((await signIn(`reader-${n}`, PASSWORD)).status === 200) signedIn++
    })
    beside.push((await reads()).p99)
    goesOn = false
    await Promise.all(people)
  }
  const [calm, busy] = [medianOf(alone), medianOf(beside)]
  const perSecond = signedIn / ROUNDS / SECONDS_PER_ROUND
  report.reads = { alone: calm, beside: busy, times: busy / calm, signInsPerSecond: perSecond }
  console.log(
    `reads by identifier, p99: alone ${calm.toFixed(2)} ms, beside ${CONCURRENT_USERS} who sign in ${busy.toFixed(2)} ms: ${(busy / calm).toFixed(1)} times (${perSecond.toFixed(1)} sign-ins/s)`,
  )
}
await database?.stop()
mkdirSync('test/bench/results', { recursive: true })
writeFileSync('test/bench/results/signin.json', `${JSON.stringify(report, null, 2)}\n`)
