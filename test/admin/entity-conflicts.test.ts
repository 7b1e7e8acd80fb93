// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import type { apiCaller } from '../fakes/cli'
import { callDemo, inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(120_000)

const CONTACTS = '/api/blueprints/contacts/entities'

describe.skipIf(!hasBrowser)('two people who change the same entity, of whom one does not hear of the other', () => {
  let demo: Awaited<ReturnType<typeof openDemo>>
  let call: ReturnType<typeof apiCaller>
  beforeAll(async () => {
    demo = await openDemo()
    call = await callDemo(demo.server)
    demo.page.setDefaultTimeout(10_000)
    // Without an answer, the list does not learn what others change.
    await demo.page.route('**/entities/changes*', () => {})
  })
  afterAll(() => demo?.[Symbol.asyncDispose]())

  const read = async () => (await call('GET', `${CONTACTS}/ada`)).body
  const panel = () => demo.page.getByRole('complementary')
  const input = (name: string) => panel().getByRole('textbox', { name, exact: true })
  const choice = (name: string) => panel().getByRole('group', { name: `${name} was changed by someone else` })
  const save = () => panel().getByRole('button', { name: 'Save' }).click()

  /** Types into a form, and lets somebody else save the same fields and another one meanwhile. */
  const collide = async () => {
    const { page, server } = demo
    await call('DELETE', `${CONTACTS}/ada`)
    await call('POST', CONTACTS, { identifier: 'ada', name: 'Ada Lovelace', job: 'Pioneer', worth: '1.00' })
    await page.goto(`${server.url}/admin/data/contacts/ada`)
    await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor()
    await input('name').fill('Ada Mine')
    await input('job').fill('Mine')
    await input('email').fill('mine@example.com')
    const theirs = { name: 'Ada Theirs', job: 'Theirs', worth: '77.00' }
    expect((await call('PUT', `${CONTACTS}/ada`, theirs)).status).toBe(200)
    const refusal = page.waitForResponse((answer) => answer.status() === 412)
    await save()
    await refusal
    await choice('name').waitFor()
    await choice('job').waitFor()
  }

  test('a refused form shows what both typed, field by field, and either can be saved', async () => {
    const { page } = demo
    await collide()
    expect(await choice('name').innerText()).toContain('Theirs: Ada Theirs')
    expect(await choice('job').innerText()).toContain('Theirs: Theirs')
    for (const [name, typed] of Object.entries({ name: 'Ada Mine', job: 'Mine', email: 'mine@example.com' }))
      expect(await input(name).inputValue()).toBe(typed)
    // What only the others changed is no question.
    expect(await input('worth').inputValue()).toBe('77.00')
    expect(await read()).toMatchObject({ name: 'Ada Theirs', job: 'Theirs' })
    await inspectScreen(page, 'entity-refused')

    await choice('name').getByRole('button', { name: 'Keep mine' }).click()
    await choice('job').getByRole('button', { name: 'Take theirs' }).click()
    expect(await input('job').inputValue()).toBe('Theirs')
    expect(await panel().getByRole('alert').count()).toBe(0)
    await save()
    await page.getByText('Saved.').waitFor()
    expect(await read()).toMatchObject({
      ...{ name: 'Ada Mine', job: 'Theirs', worth: '77.00', email: 'mine@example.com' },
    })
  })

  test('a refused form that is closed and opened again has what was typed, and asks again', async () => {
    const { page } = demo
    await collide()
    await page.reload()
    await page.getByText('Your unsaved changes were restored.').waitFor()
    expect(await input('name').inputValue()).toBe('Ada Mine')
    await choice('name').getByRole('button', { name: 'Take theirs' }).click()
    await choice('job').getByRole('button', { name: 'Keep mine' }).click()
    await save()
    await page.getByText('Saved.').waitFor()
    expect(await read()).toMatchObject({ name: 'Ada Theirs', job: 'Mine', email: 'mine@example.com' })
  })

  test('a form that others did not touch where it was typed in is saved beside their change', async () => {
    const { page } = demo
    await input('name').fill('Ada Again')
    await call('PUT', `${CONTACTS}/ada`, { worth: '99.00' })
    const saved = page.waitForResponse((answer) => answer.request().method() === 'PUT' && answer.ok())
    await save()
    await saved
    await until(async () => (await read()).name === 'Ada Again')
    await until(async () => (await input('worth').inputValue()) === '99.00')
    expect(await read()).toMatchObject({ name: 'Ada Again', worth: '99.00' })
  })

  test('a change of others while a form is being sent takes nothing of what was typed', async () => {
    const { page, server, errors } = demo
    await page.unroute('**/entities/changes*')
    await page.goto(`${server.url}/admin/data/contacts/ada`)
    await page.getByText('live', { exact: true }).waitFor()
    await input('name').fill('Ada Late')
    // The request is on its way for so long that the page hears of the others before the refusal.
    await page.route(`**${CONTACTS}/ada`, async (route) => {
      if (route.request().method() !== 'PUT') return route.continue()
      const heard = page.waitForResponse((answer) => answer.url().endsWith('/ada') && answer.status() === 200)
      await call('PUT', `${CONTACTS}/ada`, { name: 'Ada First' })
      await heard
      await page.waitForTimeout(200)
      await route.continue()
    })
    await save()
    await choice('name').waitFor()
    await page.unroute(`**${CONTACTS}/ada`)
    expect(await input('name').inputValue()).toBe('Ada Late')
    expect(await choice('name').innerText()).toContain('Theirs: Ada First')
    await panel().getByRole('button', { name: 'Keep mine' }).first().click()
    await save()
    await page.getByText('Saved.').waitFor()
    expect((await read()).name).toBe('Ada Late')
    // What others do afterwards is theirs.
    await input('name').fill('Ada Later')
    await call('PUT', `${CONTACTS}/ada`, { name: 'Ada Second' })
    await choice('name').waitFor()
    expect(await input('name').inputValue()).toBe('Ada Later')
    expect(errors.filter((error) => !error.includes('status of 412'))).toEqual([])
  })
})

/** Waits until something holds. */
async function until(holds: () => Promise<boolean>) {
  while (!(await holds())) await Bun.sleep(50)
}
