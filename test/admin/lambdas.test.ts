// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { atollMembers } from '../../src/admin/automation/lambdas/atoll-api'
import { hasBrowser } from '../fakes/browser'
import { createTestTenant } from '../test-tenant'
import { inspectScreen } from './admin-browser'
import { openAutomation, writeCode } from './automation-fixtures'

setDefaultTimeout(120_000)

test('the editor of lambdas suggests exactly what the sandbox has', async () => {
  const admin = (await createTestTenant()).as('admin')
  const code = `export default (request, atoll) => ({
    request: Object.keys(request), atoll: Object.keys(atoll), entities: Object.keys(atoll.entities('things')),
    events: Object.keys(atoll.events), crypto: Object.keys(atoll.crypto) })`
  const { _id } = (await admin.post('/lambdas', { name: 'members', code })).body
  const { result } = (await admin.post(`/lambdas/${_id}/execute`, { event: {} })).body
  const sortAll = (lists: Record<string, string[]>) =>
    Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, list.toSorted()]))
  const suggested = Object.entries(atollMembers).map(([name, list]) => [name, list.map((member) => member.name)])
  expect(sortAll(Object.fromEntries(suggested))).toEqual(sortAll(result))
})

describe.skipIf(!hasBrowser)('lambdas in the admin page', () => {
  test('an admin writes a lambda, runs it, mends its errors, compares versions, and goes back to the first', async () => {
    await using atoll = await openAutomation()
    const { page, errors, call, open } = atoll
    await open('lambdas')
    await page.getByText('There are no lambdas yet.').waitFor()
    await page.getByRole('button', { name: 'Write a lambda' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('greet')
    const code = page.getByRole('textbox', { name: 'Code' })
    await code.getByText('export default async').waitFor()
    await page.getByRole('button', { name: 'Create lambda' }).click()
    await page.getByRole('heading', { name: 'greet' }).waitFor()

    await page.getByRole('button', { name: 'Run', exact: true }).click()
    await page.getByText('"greeting": "Hello, Ada!"').waitFor()
    await page.getByText('Greeting Ada').waitFor()
    await inspectScreen(page, 'lambda-run')

    await writeCode(page, 'Code', 'export default ( => 1\n')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page
      .getByText(/^Line 1, column/)
      .first()
      .waitFor()
    expect(errors.filter((error) => !error.includes('400'))).toEqual([])
    errors.length = 0
    await writeCode(
      page,
      'Code',
      'export default (request,atoll)=>{console.warn("second")\nreturn {farewell:request.body.name}}\n',
    )
    await page.getByRole('button', { name: 'Save and run' }).click()
    await page.getByText('"farewell": "Ada"').waitFor()
    await page.getByText('Version 2').first().waitFor()
    const { _id } = (await call('GET', '/api/lambdas')).body[0]
    const formatted =
      'export default (request, atoll) => {\n  console.warn("second")\n  return { farewell: request.body.name }\n}\n'
    expect((await call('GET', `/api/lambdas/${_id}`)).body).toMatchObject({ version: 2, code: formatted })
    await code.getByText('export default (request, atoll) => {').waitFor()

    await page.getByRole('tab', { name: 'Logs' }).click()
    await page.getByText('execute').first().waitFor()
    await call('POST', `/api/lambdas/${_id}/execute`, { body: { name: 'Grace' } })
    await page.locator('summary').nth(2).waitFor()
    await page.locator('summary').first().click()
    await page.getByText('second').last().waitFor()
    await inspectScreen(page, 'lambda-logs')

    await page.getByRole('tab', { name: 'Versions' }).click()
    await page.getByRole('button', { name: /^Version 1/ }).click()
    await page.getByText('Changes since version 1').first().waitFor()
    const diff = page.getByRole('textbox', { name: 'Changes since version 1' })
    await diff.waitFor()
    expect(await diff.innerText()).toContain('farewell')
    await inspectScreen(page, 'lambda-versions')
    await page.getByRole('button', { name: 'Restore version 1' }).click()
    await page.getByText('Version 1 is back as version 3.').waitFor()
    expect((await call('GET', `/api/lambdas/${_id}`)).body.code).toContain('greeting')

    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByLabel('Time limit in ms').fill('2000')
    await page.getByRole('button', { name: 'Add variable' }).click()
    await page.getByLabel('Name of variable 1').fill('API_KEY')
    await page.getByRole('textbox', { name: 'Value of API_KEY' }).fill('secret')
    await inspectScreen(page, 'lambda-settings')
    await page.getByRole('button', { name: 'Save', exact: true }).last().click()
    await page.getByPlaceholder('is set').waitFor()
    expect((await call('GET', `/api/lambdas/${_id}`)).body).toMatchObject({ timeoutMs: 2_000, env: ['API_KEY'] })
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('secret')

    await page.getByRole('link', { name: 'Lambdas' }).click()
    await page.getByRole('cell', { name: 'Succeeded' }).waitFor()
    await inspectScreen(page, 'lambdas')
    expect(errors).toEqual([])
  })
})
