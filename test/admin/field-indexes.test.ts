// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Field, FieldIndex } from '../../src/admin/api/schema'
import {
  describeCompoundIndex,
  describeIndex,
  describeIndexChange,
  getIndexChoice,
  listIndexChoices,
  toIndexed,
} from '../../src/admin/design/index-sentences'
import { hasBrowser } from '../fakes/browser'
import type { apiCaller } from '../fakes/cli'
import { callDemo, inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(240_000)

const toField = (options: Partial<Field>): Field => ({ key: 'worth', type: 'number', ...options })
const toIndex = (options: Partial<FieldIndex>): FieldIndex => ({
  ...{ field: 'worth', fields: ['worth'], state: 'ready', reason: 'filter', since: '2026-11-24T12:00:00.000Z' },
  used: '2026-11-24T12:00:00.000Z',
  ...options,
})

describe('the sentences about indexes', () => {
  test.each<[string, Partial<Field>, string[]]>([
    ['a single value', {}, ['needed', 'always', 'never']],
    ['a list', { multi: true }, ['always', 'never']],
    ['an object', { type: 'object' }, ['always', 'never']],
    ['a unique value', { unique: true }, ['always']],
    ['a relation', { type: 'relation' }, ['always']],
    ['a list of relations', { type: 'relation', multi: true }, ['always']],
  ])('the choices of %s are read as they were written', (_, options, choices) => {
    const field = toField(options)
    expect(listIndexChoices(field)).toEqual(choices as ReturnType<typeof listIndexChoices>)
    for (const choice of listIndexChoices(field))
      expect(getIndexChoice({ ...field, indexed: toIndexed(choice, field) })).toBe(choice)
  })

  test('a definition leaves out the usual choice, and an option that changes nothing reads as the usual choice', () => {
    expect(toIndexed('needed', toField({}))).toBeUndefined()
    expect(toIndexed('always', toField({}))).toBe(true)
    expect(toIndexed('never', toField({}))).toBe(false)
    expect(toIndexed('always', toField({ multi: true }))).toBeUndefined()
    expect(getIndexChoice(toField({ multi: true, indexed: true }))).toBe('always')
    expect(getIndexChoice(toField({ type: 'relation', indexed: false }))).toBe('always')
  })

  test.each<[string, Partial<Field>, string]>([
    ['when needed', {}, 'gets an index when a query needs it'],
    ['always', { indexed: true }, 'always has an index'],
    ['never', { indexed: false }, 'never has an index'],
    ['always, of a list', { multi: true }, 'always has an index'],
    ['never, of a list', { multi: true, indexed: false }, 'never has an index'],
    ['always, of a unique field', { unique: true }, 'always has an index'],
  ])('a change to “%s” reads so after the name of the field', (_, options, words) => {
    expect(describeIndexChange(toField(options))).toBe(words)
  })

  test('a sentence says which other fields a compound index has', () => {
    const index = toIndex({ fields: ['stage', 'active', 'worth'], reason: 'list' })
    expect(describeCompoundIndex(toField({}), index)).toBe(
      'Indexed together with stage and active, because a list needed it.',
    )
    expect(describeCompoundIndex(toField({}), { ...index, state: 'building' })).toBe(
      'Being indexed together with stage and active, because a list needed it.',
    )
    expect(describeCompoundIndex(toField({}), { ...index, state: 'retiring' })).toBe(
      'The index together with stage and active is being removed.',
    )
  })

  test('a sentence says since when a field is indexed, and why', () => {
    const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' }).format(Date.UTC(2026, 10, 24, 12))
    expect(describeIndex(toField({}), toIndex({}))).toBe(`Indexed since ${day}, because a filter needed it.`)
    expect(describeIndex(toField({ multi: true }), toIndex({ reason: 'list or object' }))).toBe(
      `Indexed since ${day}, because lists and objects need it.`,
    )
  })

  test('a sentence says that an index is being built or removed, and why', () => {
    expect(describeIndex(toField({}), toIndex({ state: 'building', reason: 'sort' }))).toBe(
      'Being built, because an order needed it.',
    )
    for (const state of ['retiring', 'removing'] as const)
      expect(describeIndex(toField({}), toIndex({ state }))).toBe(
        'Being removed, because no query has used it for 30 days.',
      )
  })

  test('a sentence says why a field has no index', () => {
    expect(describeIndex(toField({}), undefined)).toBe('Not indexed: no query has needed it recently.')
    expect(describeIndex(toField({ indexed: true }), undefined)).toBe('Not indexed yet.')
    expect(describeIndex(toField({ indexed: false }), undefined)).toBe('Not indexed, because “Never” was chosen.')
  })
})

describe.skipIf(!hasBrowser)('the choice of an index in the design', () => {
  let demo: Awaited<ReturnType<typeof openDemo>>
  let call: ReturnType<typeof apiCaller>
  beforeAll(async () => {
    demo = await openDemo()
    call = await callDemo(demo.server)
  })
  afterAll(() => demo?.[Symbol.asyncDispose]())

  const toggle = (field: string) => demo.page.getByRole('button', { name: `Options of ${field}` }).click()
  const indexInput = () => demo.page.getByRole('combobox', { name: 'Index' })
  const openDesign = () => demo.page.goto(`${demo.server.url}/admin/data/contacts/all/design?tenant=demo`)
  const choose = async (choice: string) => {
    await indexInput().click()
    await demo.page.getByRole('option', { name: choice }).click()
  }
  const save = async () => {
    await demo.page.getByRole('button', { name: 'Save', exact: true }).click()
    await demo.page.getByRole('button', { name: '1 change' }).waitFor({ state: 'detached' })
  }
  const readField = async (key: string) =>
    (await call('GET', '/api/blueprints/contacts')).body.fields.find((field: Field) => field.key === key)

  test('a designer reads which fields are indexed and why, and sees that relations have no choice', async () => {
    const { page, errors } = demo
    const { status } = await call('GET', '/api/blueprints/contacts/entities?job[$gt]=A&$limit=1')
    expect(status).toBe(200)
    await openDesign()
    await toggle('company')
    await page.getByText(/^Indexed since .+, because relations need it\.$/).waitFor()
    expect(await indexInput().isDisabled()).toBe(true)
    await toggle('company')
    await toggle('job')
    await page.getByText(/^Indexed since \w+ \d+, \d{4}, because a filter needed it\.$/).waitFor()
    await inspectScreen(page, 'design-index')
    expect(errors).toEqual([])
  })

  test('a designer chooses when a field is indexed, and the saved field and its index follow', async () => {
    const { page, errors } = demo
    await openDesign()
    await toggle('lastCall')
    await page.getByText('Not indexed: no query has needed it recently.').waitFor()
    expect(await indexInput().inputValue()).toBe('When needed')
    await choose('Always')
    await save()
    await page.getByText(/^Indexed since .+, because “Always” was chosen\.$/).waitFor()
    expect(await readField('lastCall')).toMatchObject({ indexed: true })

    await choose('Never')
    await page.getByRole('button', { name: '1 change' }).click()
    const review = page.getByRole('dialog', { name: 'Changes of Contacts' })
    await review.getByText('“lastCall” never has an index.').waitFor()
    await review.getByRole('button', { name: /^Save/ }).click()
    await page.getByText('Not indexed, because “Never” was chosen.').waitFor()
    expect(await readField('lastCall')).toMatchObject({ indexed: false })

    await page.getByRole('checkbox', { name: 'Unique' }).check()
    expect(await indexInput().inputValue()).toBe('Always')
    expect(await indexInput().isDisabled()).toBe(true)
    await page.getByRole('checkbox', { name: 'Unique' }).uncheck()
    expect(await indexInput().inputValue()).toBe('When needed')
    await page.getByRole('button', { name: 'Discard' }).click()
    expect(errors).toEqual([])
  })

  test('the options of a field are usable while the server does not say which fields are indexed', async () => {
    const { page, errors } = demo
    await page.route('**/contacts/indexes', (route) => route.fulfill({ status: 500 }))
    const refused = page.waitForResponse('**/contacts/indexes')
    await openDesign()
    await toggle('worth')
    await refused
    await indexInput().waitFor()
    expect(await page.getByText(/^(Indexed|Not indexed)/).count()).toBe(0)
    expect(errors.filter((error) => !error.includes('500'))).toEqual([])
    errors.length = 0
  })

  test('the fields of a new blueprint have the choice, and no sentence about an index', async () => {
    const { page, errors } = demo
    await page.goto(`${demo.server.url}/admin/blueprints/new?tenant=demo`)
    await toggle('name')
    expect(await indexInput().inputValue()).toBe('When needed')
    expect(await page.getByText(/^(Indexed|Not indexed)/).count()).toBe(0)
    expect(errors).toEqual([])
  })
})
