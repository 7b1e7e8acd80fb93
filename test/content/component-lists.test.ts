import { expect, test } from 'bun:test'
import { nextPagePath } from '../entities/fixtures'
import { statusAndCode } from '../test-tenant'
import { createComponentsFixture } from './fixtures'

const joinIdentifiers = ({ body }: { body: { identifier: string }[] }) =>
  body.map(({ identifier }) => identifier).join('')

async function createListFixture() {
  const fixture = await createComponentsFixture()
  const components = [...'cabed'].map((identifier) => ({ identifier, content: 'export {}' }))
  await fixture.editor.post('/components/bulk', { components })
  return { ...fixture, get: (query: string) => fixture.editor.get(`/components${query}`) }
}

test('GET /components lists the newest first, or sorts and pages as requested', async () => {
  const { get } = await createListFixture()
  for (const [query, order] of [
    ['', 'debac'],
    ['?sort=created', 'cabed'],
    ['?sort=identifier', 'abcde'],
    ['?sort=-identifier', 'edcba'],
    ['?sort=componentName, -created', 'abcde'],
    ['?sort=', 'debac'],
    ['?sort=undefined&limit=undefined&page=&count=', 'debac'],
    ['?limit=2', 'de'],
    ['?limit=5000', 'debac'],
    ['?limit=0', ''],
    ['?limit=2&page=0', 'de'],
    ['?limit=2&page=2', 'ba'],
    ['?limit=2&page=3', 'c'],
    ['?limit=2&page=4', ''],
    ['?page=999999999999999', ''],
    ['?else=1&bypassAdmin=true', 'debac'],
  ])
    expect([query, joinIdentifiers(await get(query!))]).toEqual([query!, order!])
})

test('GET /components and GET /static link to the next page until the last one', async () => {
  const { get, anonymous } = await createListFixture()
  for (const [path, list] of [
    ['/components', get],
    ['/static', (query: string) => anonymous.get(`/static${query}`)],
  ] as const) {
    const pages = [await list('?sort=identifier&limit=2')]
    for (let next = nextPagePath(pages[0]!.headers); next; next = nextPagePath(pages.at(-1)!.headers)) {
      expect(next).toStartWith(`${path}?`)
      pages.push(await list(next.slice(path.length)))
    }
    expect(pages.map(joinIdentifiers)).toEqual(['ab', 'cd', 'e'])
    for (const query of ['', '?limit=5', '?limit=0']) expect((await list(query)).headers.get('link')).toBeNull()
  }
})

test('GET /components and GET /static return x-total-count only with count=true', async () => {
  const { get, anonymous } = await createListFixture()
  for (const query of ['?count=true', '?count=1&limit=2', '?count=true&page=9', '?$count=true', '?count=&$count=1'])
    expect((await get(query)).headers.get('x-total-count')).toBe('5')
  expect((await anonymous.get('/static?count=true')).headers.get('x-total-count')).toBe('5')
  for (const query of ['', '?count=false', '?count=0', '?count=undefined'])
    expect((await get(query)).headers.get('x-total-count')).toBeNull()
})

test('GET /components and GET /static reject invalid limit, page, sort and count with 400 INVALID_INPUT', async () => {
  const { get, anonymous } = await createListFixture()
  for (const [query, path] of [
    ['?limit=-1', 'limit'],
    ['?limit=x', 'limit'],
    ['?limit=1.5', 'limit'],
    ['?page=-1', 'page'],
    ['?page=1e3', 'page'],
    ['?sort=content', 'sort'],
    ['?sort=constructor', 'sort'],
    ['?sort=identifier;--', 'sort'],
    ['?count=maybe', 'count'],
  ] as const)
    for (const answer of [await get(query), await anonymous.get(`/static${query}`)]) {
      expect([query, ...statusAndCode(answer)]).toEqual([query, 400, 'INVALID_INPUT'])
      expect(answer.body.details[0].path).toBe(path)
    }
  expect(joinIdentifiers(await get('?limit=1&limit=2'))).toBe('de')
  expect((await get(`?sort=${'created,_id,'.repeat(20)}`)).status).toBe(200)
})
