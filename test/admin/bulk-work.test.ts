// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, PASSWORD } from '../fakes/cli'
import { inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(120_000)

const TEAMS = '/api/blueprints/teams/entities'
const PLAYERS = '/api/blueprints/players/entities'

/** The teams 0 to 4: two of them have a player, and two belong to the user Eve. */
const COUNT = 5

describe.skipIf(!hasBrowser)('work on many entities, of which the server refuses some', () => {
  let demo: Awaited<ReturnType<typeof openDemo>>
  let call: ReturnType<typeof apiCaller>
  beforeAll(async () => {
    demo = await openDemo()
    const { server } = demo
    const [, token = ''] = await server.until(/x-api-key: (\S+)'/)
    call = apiCaller(server.url, { 'x-api-key': token, tenant: 'demo' })
    await call('POST', '/api/users', { username: 'eve', password: PASSWORD, roles: ['editor'] })
    await call('POST', '/api/blueprints', {
      ...{ key: 'teams', name: 'Teams' },
      fields: [
        { key: 'name', type: 'string', required: true },
        { key: 'code', type: 'string', unique: true },
        { key: 'town', type: 'string' },
      ],
      permissions: [
        { operation: 'create', roleBased: ['*'] },
        { operation: 'read', roleBased: ['*'], scope: 'tenant' },
        { operation: 'update', roleBased: ['*'], scope: 'user' },
      ],
    })
    await call('POST', '/api/blueprints', {
      ...{ key: 'players', name: 'Players' },
      fields: [{ key: 'team', type: 'relation', target: 'teams', onDelete: 'restrict' }],
    })
    const signedIn = await apiCaller(server.url, { tenant: 'demo' })('POST', '/api/signin', {
      ...{ username: 'eve', password: PASSWORD, authType: 'oauth' },
    })
    const eve = apiCaller(server.url, { tenant: 'demo', authorization: `Bearer ${signedIn.body.payload.token}` })
    for (let n = 0; n < COUNT; n++) {
      const create = n < 2 ? eve : call
      await create('POST', TEAMS, { identifier: `team${n}`, name: `Team ${n}`, code: `c${n}`, town: 'Bern' })
    }
    for (const team of ['team1', 'team3']) await call('POST', PLAYERS, { team })
  })
  afterAll(() => demo?.[Symbol.asyncDispose]())

  const openTeams = async () => {
    await demo.page.goto(`${demo.server.url}/admin/data/teams?$sort=name`)
    await demo.page.getByText('live', { exact: true }).waitFor()
    await demo.page.getByRole('cell', { name: 'Team 4', exact: true }).waitFor()
    await demo.page.getByRole('checkbox', { name: 'Mark all rows of this page' }).check()
    await demo.page.getByText(`${COUNT} marked`).waitFor()
  }
  const change = async (field: string, value: string, named = `${COUNT} teams`) => {
    const { page } = demo
    await page.getByRole('button', { name: `Change a field of ${named}` }).click()
    await page.getByRole('combobox', { name: 'Field' }).click()
    await page.getByRole('option', { name: field }).click()
    await page.getByRole('textbox', { name: 'New value' }).fill(value)
    await page.getByRole('button', { name: `Change ${named}` }).click()
  }
  const refused = () => demo.page.getByRole('dialog').getByRole('list', { name: 'Refused' })
  const close = () => demo.page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
  const valuesOf = async (field: string) =>
    (await call('GET', `${TEAMS}?$sort=name`)).body.map((team: Record<string, unknown>) => team[field])

  test('a value that no two may have is given to the first, and the others stay marked with the reason', async () => {
    const { page } = demo
    await openTeams()
    await change('code', 'same')
    await page.getByText('1 of 5 done, 4 refused').waitFor()
    const lines = await refused().getByRole('listitem').allInnerTexts()
    expect(lines.map((line) => line.split('\n')[0])).toEqual(['Team 1', 'Team 2', 'Team 3', 'Team 4'])
    for (const line of lines) expect(line).toContain('code')
    await inspectScreen(page, 'bulk-refused')
    await close()
    await page.getByText('4 marked').waitFor()
    expect(await valuesOf('code')).toEqual(['same', 'c1', 'c2', 'c3', 'c4'])
    // What was done can be taken back.
    await page.getByRole('button', { name: 'Undo' }).click()
    await until(async () => (await valuesOf('code'))[0] === 'c0')
    await change('town', 'Basel', '4 teams')
    await page.getByText('Changed town of 4 teams.').waitFor()
    expect(await valuesOf('town')).toEqual(['Bern', 'Basel', 'Basel', 'Basel', 'Basel'])
  })

  test('entities that others refer to are not deleted, and the dialog leads to them', async () => {
    const { page, errors } = demo
    await openTeams()
    await page.getByRole('button', { name: 'Delete 5 teams' }).click()
    await page.getByLabel('Type teams to confirm').fill('teams')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete 5 teams' }).click()
    await page.getByText('3 of 5 done, 2 refused').waitFor()
    expect(await refused().getByText('1 of "players" by "team"').count()).toBe(2)
    expect(await valuesOf('name')).toEqual(['Team 1', 'Team 3'])
    await page.getByText('2 marked').waitFor()
    await refused().getByRole('link', { name: 'Team 3' }).click()
    await page.getByRole('heading', { name: 'Team 3' }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(errors.filter((error) => !/status of 4(00|09)/.test(error))).toEqual([])
  })

  test('a user whose rule allows only their own entities changes those, and is told of the others', async () => {
    const { page, server } = demo
    await page.getByRole('button', { name: 'Account of admin' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByLabel('Username or e-mail address').fill('eve')
    await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('button', { name: 'Account of eve' }).waitFor()
    await page.goto(`${server.url}/admin/data/teams`)
    await page.getByRole('cell', { name: 'Team 3', exact: true }).waitFor()
    await page.getByRole('checkbox', { name: 'Mark all rows of this page' }).check()
    await change('town', 'Genf', '2 teams')
    await page.getByText('1 of 2 done, 1 refused').waitFor()
    await refused().getByRole('link', { name: 'Team 3' }).waitFor()
    await inspectScreen(page, 'bulk-forbidden')
    await close()
    await page.getByText('1 marked').waitFor()
    expect(await valuesOf('town')).toEqual(['Genf', 'Basel'])
  })
})

/** Waits until something holds. */
async function until(holds: () => Promise<boolean>) {
  while (!(await holds())) await Bun.sleep(50)
}
