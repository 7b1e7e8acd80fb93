import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { freeReadMs } from '../../src/entities/query/read-costs'
import { cardComponent } from '../content/fixtures'
import { createLambda } from '../lambdas/fixtures'
import { type ApiClient, createTestTenant, statusAndCode, type TestResponse, withoutRateLimits } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(120_000)

/** Sends one costly request. `n` tells requests apart. */
type Send = (n: number) => Promise<TestResponse>
type CostlyPlace = {
  /** How many requests of one tenant run and wait, and the code of a refusal. */
  accepted: number
  code: string
  /** Returns how a tenant asks for it. */
  prepare(testTenant: TestTenant): Promise<Send>
}
type TestTenant = Awaited<ReturnType<typeof createTestTenant>>

const PASSWORD = 'correct horse'
const signUp = async ({ anonymous }: TestTenant) => {
  expect((await anonymous.post('/signup', { username: 'ada', password: PASSWORD })).status).toBe(201)
}
const onAdmin =
  (send: (admin: ApiClient, n: number) => Promise<TestResponse>) =>
  async (testTenant: TestTenant): Promise<Send> => {
    const admin = testTenant.as('admin')
    return (n) => send(admin, n)
  }

// Every list is costly from its second statement on.
const defaults = { ...freeReadMs }
beforeAll(() => Object.assign(freeReadMs, { thread: 0, waiting: 0 }))
afterAll(() => void Object.assign(freeReadMs, defaults))

const places: Record<string, CostlyPlace> = {
  'sign-ins': {
    accepted: 101,
    code: 'BUSY',
    async prepare(testTenant) {
      await signUp(testTenant)
      return () => testTenant.anonymous.post('/signin', { username: 'ada', password: PASSWORD })
    },
  },
  'blocks of HTML': {
    accepted: 101,
    code: 'BUSY',
    prepare: onAdmin((admin, n) =>
      admin.post('/blocks', { name: `block-${n}`, contentType: 'html', content: `<p>${'<b>x</b>'.repeat(2_000)}</p>` }),
    ),
  },
  components: {
    accepted: 52,
    code: 'BUSY',
    prepare: onAdmin((admin, n) => admin.post('/components', cardComponent({ identifier: `card-${n}` }))),
  },
  'counted lists': {
    accepted: 100,
    code: 'BUSY',
    async prepare(testTenant) {
      const admin = testTenant.as('admin')
      const fields = [{ key: 'worth', type: 'number' }]
      await admin.post('/blueprints', { key: 'things', name: 'Things', fields })
      for (let n = 0; n < 30; n++) await admin.post('/blueprints/things/entities', { worth: n })
      return (n) => admin.get(`/blueprints/things/entities?worth[$gte]=${n % 10}&$count=true`)
    },
  },
  lambdas: {
    accepted: 100 + Math.ceil(config.ATOLL_LAMBDA_PROCESSES / 2),
    code: 'LAMBDA_BUSY',
    async prepare(testTenant) {
      const admin = testTenant.as('admin')
      const code = '() => { for (const end = Date.now() + 30; Date.now() < end; ); return 1 }'
      const path = await createLambda(admin, code)
      return () => admin.post(`${path}/execute`, {})
    },
  },
}

test.each(Object.entries(places))(
  'a flood of %s at one tenant is refused beyond its queue, and another tenant is served next',
  async (_, { accepted, code, prepare }) => {
    using _limits = withoutRateLimits()
    const [flood, other] = [await prepare(await createTestTenant()), await prepare(await createTestTenant())]
    // What is loaded or started at the first use.
    for (const send of [flood, other]) expect((await send(1_000)).status).toBeLessThan(300)
    const answers: TestResponse[] = []
    // As many again, because some are served while others arrive.
    const count = accepted * 2
    const sent = Array.from({ length: count }, (_, n) => flood(n).then((answer) => answers.push(answer)))
    await waitUntil(() => answers.some(({ status }) => status === 503))
    const doneBefore = answers.filter(({ status }) => status < 300).length
    expect((await other(1_001)).status).toBeLessThan(300)
    const doneMeanwhile = answers.filter(({ status }) => status < 300).length - doneBefore
    await Promise.all(sent)
    const refused = answers.filter(({ status }) => status >= 300)
    for (const answer of refused) {
      expect(statusAndCode(answer)).toEqual([503, code])
      expect(answer.headers.get('retry-after')).toBe('1')
    }
    expect(refused.length).toBeGreaterThan(0)
    expect(count - refused.length).toBeGreaterThanOrEqual(accepted)
    // Behind the flood, the other tenant would have waited for all that was accepted of it.
    expect(doneMeanwhile).toBeLessThan(accepted / 2)
  },
)

test('a flood of one user, which fills the queue of the tenant, is served behind the next request of another user', async () => {
  using _ = withoutRateLimits()
  const testTenant = await createTestTenant()
  const content = `<p>${'<b>x</b>'.repeat(2_000)}</p>`
  const create = (user: 'user' | 'other', n: number) =>
    testTenant.as(user).post('/blocks', { name: `${user}-${n}`, contentType: 'html', content })
  let [created, refused] = [0, 0]
  const flood = Array.from({ length: 150 }, async (_, n) => {
    const { status } = await create('user', n)
    if (status === 201) created++
    else refused++
  })
  await waitUntil(() => refused > 0)
  const createdBefore = created
  expect((await create('other', 0)).status).toBe(201)
  expect(created - createdBefore).toBeLessThan(50)
  await Promise.all(flood)
})
