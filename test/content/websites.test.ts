import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { configurations } from '../../src/accounts/settings/tables'
import { config } from '../../src/config'
import { change } from '../../src/content/configurations'
import { settleHosts } from '../../src/content/websites'
import { holding } from '../../src/jobs/holding'
import { chores } from '../../src/operations/chores'
import { claimedHosts, claimWebsites } from '../../src/tenancy/hosts'
import { createTenant, deleteTenant, setHosts, showTenant, tenantNamed } from '../../src/tenancy/tenants'
import { ask, house, refusal } from '../house'
import { atoll, caller, emptyFolder, makeTenant, serve, signIn, within5s } from '../outside/program'

setDefaultTimeout(30_000)

beforeAll(() => {
  config.ATOLL_HOST_CLAIMS = 'open'
})
afterAll(() => {
  config.ATOLL_HOST_CLAIMS = 'off'
})

const APP = '/configurations/app-configuration'
type House = Awaited<ReturnType<typeof house>>

const name = () => `w${crypto.randomUUID()}.example`
const set = (home: House, ...websiteUrls: string[]) => home.as('admin').put(APP, { websiteUrls })
const hosts = async ({ id }: House) => (await showTenant(id)).hosts
const websites = async (home: House) => (await home.stranger.get(APP)).body.metadata.websiteUrls
/** Which tenant answers at a host. */
const at = async (host: string, home: House) => {
  const { status } = await ask('GET', `http://${host}/api/me`, { headers: { 'x-api-key': home.tokens.user } })
  return status === 200
}

describe('the websites of a tenant', () => {
  test('have it answer at their hosts, for as long as it names them', async () => {
    const home = await house()
    const [one, two] = [name(), name()]
    expect(await at(one, home)).toBeFalse()
    expect(
      (await set(home, `https://${one}/`, `http://${two}:8080/shop?x=1`, `https://${one.toUpperCase()}`)).status,
    ).toBe(200)
    expect([await at(one, home), await at(`${two}:80`, home)]).toEqual([true, true])
    expect((await hosts(home)).sort()).toEqual([`${home.id}.test`, one, two].sort())
    expect((await set(home, `https://${two}`)).status).toBe(200)
    expect([await at(one, home), await at(two, home)]).toEqual([false, true])
    // Other keys have nothing to do with it.
    await home.as('admin').put(APP, { logo: 'x' })
    expect(await at(two, home)).toBeTrue()
    await home.as('admin').put(APP, { websiteUrls: null })
    expect(await at(two, home)).toBeFalse()
    expect(await hosts(home)).toEqual([`${home.id}.test`])
  })

  test('are none of another tenant’s: then nothing is changed', async () => {
    const [one, other] = [await house(), await house()]
    const [own, wanted, free] = [name(), name(), name()]
    await set(one, `https://${wanted}`)
    await set(other, `https://${own}`)
    // Neither are their names in full, with a dot at the end.
    for (const full of [`${wanted}.`, `${one.id}.test.`]) {
      expect(refusal(await set(other, `https://${full}`))).toEqual([409, 'HOST_TAKEN'])
      expect(await at(`${full}:80`, one)).toBeTrue()
    }
    for (const taken of [wanted, `${one.id}.test`]) {
      const answer = await other
        .as('admin')
        .put(APP, { websiteUrls: [`https://${free}`, `https://${taken}`], logo: 'x' })
      expect([...refusal(answer), answer.body.details]).toEqual([409, 'HOST_TAKEN', { hosts: [taken] }])
    }
    expect((await other.stranger.get(APP)).body).toEqual({
      metadata: { websiteUrls: [`https://${own}`] },
      hosts: [{ host: own, state: 'served' }],
    })
    expect((await hosts(other)).sort()).toEqual([`${other.id}.test`, own].sort())
    expect([await at(wanted, one), await at(free, other)]).toEqual([true, false])
    // What is given back can be had.
    await set(one)
    expect((await set(other, `https://${wanted}`)).status).toBe(200)
    expect(await at(wanted, other)).toBeTrue()
  })

  test('go to one when several tenants want them at once', async () => {
    const homes = await Promise.all([1, 2, 3].map(() => house()))
    const host = name()
    const answers = await Promise.all(homes.map((home) => set(home, `https://${host}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
    const winner = homes[answers.findIndex(({ status }) => status === 200)]!
    expect(await at(host, winner)).toBeTrue()
  })

  test('may be on anybody’s own machine, where no tenant answers for it', async () => {
    const [one, other] = [await house(), await house()]
    const urls = ['http://localhost:5173', 'http://127.0.0.1:8080', 'http://[::1]:3000', 'http://app.localhost']
    for (const home of [one, other]) {
      expect((await set(home, ...urls)).status).toBe(200)
      expect(await hosts(home)).toEqual([`${home.id}.test`])
    }
  })

  test('agree with the hosts however many are written at once', async () => {
    const home = await house()
    const names = Array.from({ length: 6 }, name)
    const answers = await Promise.all(names.map((host) => set(home, `https://${host}`)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    const [url] = await websites(home)
    expect((await hosts(home)).sort()).toEqual([`${home.id}.test`, new URL(url).hostname].sort())
    const host = name()
    await Promise.all([set(home), set(home, `https://${host}`), set(home, `https://${host}`), set(home)])
    const left = (await websites(home)).map((one: string) => new URL(one).hostname)
    expect((await hosts(home)).sort()).toEqual([`${home.id}.test`, ...left].sort())
  })
})

describe('hosts that the command line gives', () => {
  test('stay when a website leaves, and a website’s when the command line takes its own', async () => {
    const home = await house()
    const [first, given, both, own] = [`${home.id}.test`, name(), name(), name()]
    await setHosts(home.id, [first, given, both])
    await set(home, `https://${both}`, `https://${own}`)
    expect((await hosts(home)).sort()).toEqual([first, given, both, own].sort())
    await setHosts(home.id, [first])
    expect((await hosts(home)).sort()).toEqual([first, both, own].sort())
    await setHosts(home.id, [first, given, both])
    await set(home)
    expect((await hosts(home)).sort()).toEqual([first, given, both].sort())
    await setHosts(home.id, [])
    expect(await hosts(home)).toEqual([])
  })

  test('are taken from a website of another tenant, which does not get them back', async () => {
    const [one, other] = [await house(), await house()]
    const host = name()
    await set(one, `https://${host}`)
    await setHosts(other.id, [host])
    expect([await at(host, one), await at(host, other)]).toEqual([false, true])
    await settleHosts(await tenantNamed(one.id))
    expect(await at(host, other)).toBeTrue()
    expect(refusal(await set(one, `https://${host}`))).toEqual([409, 'HOST_TAKEN'])
    expect((await set(one, `https://${name()}`)).status).toBe(200)
    const fresh = name()
    await set(one, `https://${fresh}`)
    const id = `w${crypto.randomUUID()}`
    await createTenant(id, [fresh])
    expect(await hosts(one)).toEqual([`${one.id}.test`])
    await deleteTenant(id)
    await settleHosts(await tenantNamed(one.id))
    expect((await hosts(one)).sort()).toEqual([`${one.id}.test`, fresh].sort())
  })

  test('and those of websites go with their tenant', async () => {
    const [one, other] = [await house(), await house()]
    const host = name()
    await set(one, `https://${host}`)
    await deleteTenant(one.id)
    expect((await set(other, `https://${host}`)).status).toBe(200)
  })
})

describe('what was interrupted', () => {
  const claimed = async ({ id }: House) => (await claimedHosts(id)).map(({ host }) => host)
  const settle = async ({ id }: House) => settleHosts(await tenantNamed(id))

  test.each([[[]], [['https://a.kept.example']]])('before the write leaves nothing, on top of %p', async (before) => {
    const home = await house()
    const kept = before.map((url) => url.replace('a.kept', home.id))
    if (kept.length) await set(home, ...kept)
    const version = (await home.tenant.db.select().from(configurations).get())?.version ?? 0
    const host = name()
    await claimWebsites(home.id, { hosts: [host], origins: [], version: version + 1 })
    expect(await at(host, home)).toBeTrue()
    await settle(home)
    expect(await at(host, home)).toBeFalse()
    expect(await claimed(home)).toEqual(kept.map((url) => new URL(url).hostname))
    expect(await websites(home)).toEqual(kept.length ? kept : undefined)
    // And whoever was only slow does not bring it back.
    await settle(home)
    expect((await set(home, `https://${host}`)).status).toBe(200)
    await settle(home)
    expect(await at(host, home)).toBeTrue()
  })

  test('is found by the housekeeping', async () => {
    const home = await house()
    await claimWebsites(home.id, { hosts: [name()], origins: [], version: 1 })
    await holding(await tenantNamed(home.id), 'housekeeping', async (held) => {
      for (const chore of chores) await chore(held)
    })
    expect(await claimed(home)).toEqual([])
  })

  test('after the write is given back', async () => {
    const home = await house()
    const [old, fresh] = [name(), name()]
    await set(home, `https://${old}`)
    const websiteUrls = JSON.stringify({ websiteUrls: [`https://${fresh}`] })
    await claimWebsites(home.id, { hosts: [fresh], origins: [], version: 2 })
    await home.tenant.write(async (tx) => {
      await tx.ask('update configurations set metadata = ?, version = 2', [websiteUrls])
    })
    expect((await claimed(home)).sort()).toEqual([old, fresh].sort())
    await settle(home)
    expect(await claimed(home)).toEqual([fresh])
  })

  test('by a failure is settled at once', async () => {
    const home = await house()
    const [old, fresh] = [name(), name()]
    await set(home, `https://${old}`)
    const { write } = home.tenant
    let failed = false
    const actor = {
      ...{ user: home.users.admin, roles: ['admin'], privileged: true, workspace: null },
      ...{ via: 'api-key' as const, scopes: [] },
    }
    const ctx = {
      ...(await tenantNamed(home.id)),
      actor,
      // The disk is full, for a moment.
      write: ((work) => {
        if (failed) return write(work)
        failed = true
        throw new Error('full')
      }) as typeof write,
    }
    const answer = { request: new Request('http://x.test'), set: { headers: {} } }
    const input = { metadata: { websiteUrls: [`https://${fresh}`] } }
    await expect(change(ctx, 'app-configuration', input, answer)).rejects.toThrow('full')
    expect(await claimed(home)).toEqual([old])
    expect(await websites(home)).toEqual([`https://${old}`])
  })

  test('does not take the host of a change that is under way', async () => {
    const home = await house()
    const host = name()
    for (let round = 0; round < 5; round++) {
      const [{ status }] = await Promise.all([set(home, `https://${host}`), settle(home), settle(home)])
      expect(status).toBe(200)
      expect(await claimed(home)).toEqual([host])
      await Promise.all([set(home), settle(home)])
      expect(await claimed(home)).toEqual([])
    }
  })

  test('like a restored configuration gets its hosts again', async () => {
    const home = await house()
    const [old, lost] = [name(), name()]
    await set(home, `https://${lost}`)
    for (const _ of [1, 2, 3]) await set(home, `https://${old}`)
    const websiteUrls = JSON.stringify({ websiteUrls: [`https://${lost}`] })
    await home.tenant.write(async (tx) => {
      await tx.ask('update configurations set metadata = ?, version = 1', [websiteUrls])
    })
    await settle(home)
    expect(await claimed(home)).toEqual([lost])
    expect((await set(home, `https://${old}`)).status).toBe(200)
    expect(await claimed(home)).toEqual([old])
  })
})

test('another process sees the hosts of websites within five seconds, and keeps them', async () => {
  const env = { ATOLL_HOST_CLAIMS: 'open', ATOLL_DATABASE_URL: config.ATOLL_DATABASE_URL }
  const place = { at: emptyFolder(), env }
  const id = `w${crypto.randomUUID().slice(0, 8)}`
  await makeTenant(place, id)
  await using server = await serve(place)
  const headers = await signIn(server.url, id)
  const [host, stray] = [name(), name()]
  const websiteUrls = [`https://${host}`]
  expect((await caller(server.url, headers)('PUT', `/api${APP}`, { websiteUrls })).status).toBe(200)
  const shown = async () => (await atoll(`tenant show ${id} --json`, place)).json.hosts.sort()
  expect(await shown()).toEqual([host, `${id}.test`].sort())

  await atoll(`tenant hosts ${id} ${stray}`, place)
  expect(await shown()).toEqual([host, stray].sort())
  const there = await within5s(
    () => caller(server.url, { host: stray })('GET', `/api${APP}`),
    ({ status }) => status === 200,
  )
  expect(there.body).toEqual({ metadata: { websiteUrls }, hosts: [{ host, state: 'served' }] })
})
