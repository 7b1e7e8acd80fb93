import { expect, test } from 'bun:test'
import { nextOf } from '../entities/kit'
import { type Client, house, refusal } from '../house'

const { as, id } = await house()
const admin = as('admin')
const source = `source-${id}`

const write = async (names: string[], by: Client = admin) => {
  for (const eventName of names) expect((await by.post('/events', { source, kind: 'k', eventName })).status).toBe(201)
}
const namesOf = (body: { eventName: string }[]) => body.map(({ eventName }) => eventName)

/** Follows the links of a list, with something written after each page. */
async function follow(path: string, afterPage: (page: number) => Promise<void>) {
  const seen: string[] = []
  let pages = 0
  for (let at: string | undefined = path; at; pages++) {
    const { status, body, headers } = await admin.get(at)
    expect([at, status]).toEqual([at, 200])
    seen.push(...namesOf(body))
    at = nextOf(headers)
    await afterPage(pages)
  }
  return { seen, pages }
}

test('a list that grows while it is paged shows nothing twice and skips nothing', async () => {
  await write(['a', 'b', 'c', 'd', 'e'])
  const { seen, pages } = await follow(`/events?source=${source}&limit=2`, (page) => write([`later-${page}`]))
  expect([seen, pages]).toEqual([['e', 'd', 'c', 'b', 'a'], 3])
  const searched = await follow(`/events?source=${source}&search=later&limit=1`, (page) =>
    page < 2 ? write([`later-still-${page}`]) : Promise.resolve(),
  )
  expect(searched.seen).toEqual(['later-2', 'later-1', 'later-0'])
})

test('pages by a place in any order that the list can be sorted by, and counts all of it', async () => {
  const all = namesOf((await admin.get(`/events?source=${source}&limit=1000`)).body)
  for (const sort of ['eventName', '-eventName', 'kind,-eventName', 'created', '-kind,created,_id']) {
    const sorted = namesOf((await admin.get(`/events?source=${source}&sort=${sort}&limit=1000`)).body)
    const { seen } = await follow(`/events?source=${source}&sort=${sort}&limit=2`, async () => {})
    expect([sort, seen]).toEqual([sort, sorted])
    expect(seen.toSorted()).toEqual(all.toSorted())
  }
  const first = await admin.get(`/events?source=${source}&limit=2&count=true`)
  const second = await admin.get(nextOf(first.headers)!)
  expect([first, second].map(({ headers }) => headers.get('x-total-count'))).toEqual([`${all.length}`, `${all.length}`])
})

test('keeps the place of rows whose sorted value is missing, which come last in both directions', async () => {
  const api = await house()
  const own = api.as('admin')
  // Mails that were not sent have no time of sending.
  for (let n = 0; n < 5; n++)
    expect(
      (await own.post('/users', { username: `u${n}`, password: 'correct-horse', email: `u${n}@x.test` })).status,
    ).toBe(201)
  for (let n = 0; n < 3; n++) await api.stranger.post('/password/forgot', { email: `u${n}@x.test` })
  for (const sort of ['sent', '-sent', 'sent,-created', '-created'])
    for (const limit of [1, 2]) {
      const all = (await own.get(`/mails?sort=${sort}&limit=1000`)).body as { _id: string }[]
      const seen: string[] = []
      for (let at: string | undefined = `/mails?sort=${sort}&limit=${limit}`; at; ) {
        const { body, headers } = await own.get(at)
        seen.push(...body.map(({ _id }: { _id: string }) => _id))
        at = nextOf(headers)
      }
      expect([sort, seen]).toEqual([sort, all.map(({ _id }) => _id)])
    }
})

test('refuses a place of another order, of another list or of nobody with 400', async () => {
  const { headers } = await admin.get(`/events?source=${source}&limit=2`)
  const cursor = new URL(`http://x${nextOf(headers)}`).searchParams.get('$after')!
  const forged = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const paths = [
    `/events?source=${source}&sort=kind&$after=${cursor}`,
    `/ai/usage?$after=${cursor.slice(0, -3)}`,
    `/events?$after=x`,
    `/events?$after=${forged(['-created,-_id', 'text', 'x'])}`,
    `/events?$after=${forged(['-created,-_id', 1.5, 'x'])}`,
    `/events?$after=${forged(['-created,-_id', null, 'x'])}`,
    `/events?$after=${forged(['-created,-_id', 1, 'a\0b'])}`,
    `/events?$after=${forged(['-created,-_id', 1])}`,
    `/events?$after=${forged({ a: 1 })}`,
  ]
  for (const path of paths) expect([path, ...refusal(await admin.get(path))]).toEqual([path, 400, 'INVALID_INPUT'])
  expect((await admin.get(`/events?$after=`)).status).toBe(200)
})

test('a page number goes on working', async () => {
  const all = namesOf((await admin.get(`/events?source=${source}&limit=1000`)).body)
  const { body } = await admin.get(`/events?source=${source}&limit=2&page=2`)
  expect(namesOf(body)).toEqual(all.slice(2, 4))
})
