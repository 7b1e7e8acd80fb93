// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller } from '../fakes/cli'
import { inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(180_000)

const COUNT = 100_000
const FIELDS = 200
const FIXED_FIELDS = 8
const HTML = '<script>globalThis.isAttacked = 1</script><img src="x" onerror="globalThis.isAttacked = 1">'
const HOSTILE = [
  HTML,
  'מחיר 123 שלום עולם',
  'العربية من اليمين',
  '🏳️‍🌈👩‍👩‍👧‍👦🇨🇭'.repeat(20),
  'unbroken'.repeat(1_000),
  '\u202Egnp.exe',
  "');--",
]

/** Scrolls a list from its top to its end, in the browser, and returns how long its frames took (ms). */
const scrollThrough = (label: string) => `new Promise((resolve) => {
  const list = document.querySelector('section[aria-label="${label}"]')
  const frames = []
  const step = list.scrollHeight / 240
  let last = performance.now()
  const scroll = (time) => {
    frames.push(time - last)
    last = time
    if (list.scrollTop + list.clientHeight >= list.scrollHeight - 1) return resolve(frames)
    list.scrollTop += step
    requestAnimationFrame(scroll)
  }
  requestAnimationFrame(scroll)
})`

describe.skipIf(!hasBrowser)('large and hostile entities in a browser', () => {
  test('a list of 100,000 entities scrolls from its top to its end, and only the rows in view exist', async () => {
    await using demo = await openDemo()
    const { page, server, errors } = demo
    const [, token = ''] = await server.until(/x-api-key: (\S+)'/)
    const headers = { 'x-api-key': token, tenant: 'demo' }
    const call = apiCaller(server.url, headers)
    const fields = ['name', 'place'].map((key) => ({ key, type: 'string' }))
    const all = [
      ...fields,
      { key: 'value', type: 'number' },
      { key: 'day', type: 'date' },
      { key: 'ok', type: 'boolean' },
    ]
    await call('POST', '/api/blueprints', { key: 'readings', name: 'Readings', fields: all })
    const lines = Array.from({ length: COUNT }, (_, n) =>
      JSON.stringify({
        name: `Reading ${n}`,
        place: `Place ${n % 97}`,
        value: n * 7,
        day: '2030-01-31',
        ok: n % 3 === 0,
      }),
    )
    const answer = await fetch(`${server.url}/api/blueprints/readings/entities/import`, {
      ...{ method: 'POST', headers: { ...headers, 'content-type': 'application/x-ndjson' }, body: lines.join('\n') },
    })
    expect(await answer.json()).toMatchObject({ imported: COUNT, failed: 0 })

    await page.goto(`${server.url}/admin/data/readings`)
    await page.getByRole('cell', { name: `Reading ${COUNT - 1}`, exact: true }).waitFor()
    const frames = (await page.evaluate<number[]>(scrollThrough('Readings'))).sort((a, b) => a - b)
    const at = (part: number) => Math.round(frames[Math.floor((frames.length - 1) * part)]!)
    console.info(`${frames.length} frames: median ${at(0.5)} ms, 95 % ${at(0.95)} ms, longest ${at(1)} ms`)
    await page.getByRole('cell', { name: 'Reading 0', exact: true }).waitFor()
    expect(await page.locator('tbody tr').count()).toBeLessThan(100)
    // Sorted by a field, the end is as near.
    await page.getByRole('button', { name: 'value', exact: true }).click()
    await page.getByRole('cell', { name: 'Reading 0', exact: true }).waitFor()
    await page.locator('tr[data-index="0"]').focus()
    await page.keyboard.press('End')
    await page.getByRole('cell', { name: `Reading ${COUNT - 1}`, exact: true }).waitFor()
    await page.goto(`${server.url}/admin/data`)
    await page
      .getByRole('row', { name: /Readings/ })
      .getByText('about 100,000')
      .waitFor()
    expect(errors).toEqual([])
  })

  test('hostile texts, names and choices are shown as text and do not break the layout', async () => {
    await using demo = await openDemo()
    const { page, server, errors } = demo
    const [, token = ''] = await server.until(/x-api-key: (\S+)'/)
    const call = apiCaller(server.url, { 'x-api-key': token, tenant: 'demo' })
    const many = Array.from({ length: FIELDS - FIXED_FIELDS }, (_, n) => ({ key: `field${n}`, type: 'string' }))
    const created = await call('POST', '/api/blueprints', {
      ...{ key: 'hostile', name: `Hostile ${HTML}`, description: HTML, dispatchers: { create: true, update: true } },
      fields: [
        { key: 'name', type: 'string', title: HTML, description: HTML },
        { key: 'long', type: 'text', title: 'w'.repeat(200) },
        { key: 'choice', type: 'string', enum: HOSTILE },
        { key: 'list', type: 'string', multi: true },
        { key: 'thing', type: 'object', schema: { type: 'object', properties: { [HTML]: { type: 'string' } } } },
        { key: 'to', type: 'relation', target: 'hostile' },
        { key: 'link', type: 'url' },
        { key: 'words', type: 'text', multi: true },
        ...many,
      ],
    })
    expect(created.status).toBe(201)
    const [first, ...operations] = HOSTILE.map((text, n) => ({
      op: 'create',
      data: {
        ...{ identifier: `h${n}<b>"'`, name: text, long: text, choice: text, list: HOSTILE, words: HOSTILE },
        link: `https://example.com/?q=${encodeURIComponent(HTML)}#"onclick="x`,
        ...{ thing: { [HTML]: text }, ...(n > 0 && { to: `h0<b>"'` }) },
      },
    }))
    const path = '/api/blueprints/hostile/entities/batch'
    const answered = await call('POST', path, { operations: [first] })
    expect(answered.body).toMatchObject({ results: [{ status: 201 }] })
    expect((await call('POST', path, { operations })).status).toBe(200)
    await page.goto(`${server.url}/admin/data/hostile`)
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByRole('cell', { name: HOSTILE[1]!, exact: true }).first().waitFor()
    await inspectScreen(page, 'entities-hostile')
    await page.getByRole('cell', { name: HOSTILE[1]!, exact: true }).first().click()
    await page.getByRole('heading', { name: HOSTILE[1]! }).waitFor()
    const isTooWide =
      'document.querySelector("aside header + div").scrollWidth > document.querySelector("aside header + div").clientWidth'
    await inspectScreen(page, 'entity-hostile')
    expect(await page.evaluate(isTooWide)).toBe(false)
    // The author of a change may be called like this, too.
    const [me] = (await call('GET', '/api/users?username=admin')).body
    expect((await call('PUT', `/api/users/${me._id}`, { name: HTML })).status).toBe(200)
    const changed = `/api/blueprints/hostile/entities/${encodeURIComponent(`h1<b>"'`)}`
    expect((await call('PUT', changed, { name: HTML, long: 'other' })).status).toBe(200)
    await page.goto(`${server.url}/admin/data/hostile/${encodeURIComponent(`h1<b>"'`)}#history`)
    await page
      .getByText(/^Changed by/)
      .first()
      .waitFor()
    await page.getByText(HTML, { exact: true }).first().waitFor()
    await inspectScreen(page, 'entity-hostile-history')
    expect(await page.evaluate(isTooWide)).toBe(false)
    expect(await page.evaluate('globalThis.isAttacked')).toBeUndefined()
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    expect(errors).toEqual([])
  })
})
