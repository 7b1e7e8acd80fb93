import { expect, test } from 'bun:test'
import { renderTemplate } from '../../src/integrations/templates'
import { inputToLambdaRequest } from '../../src/lambdas/request'

const MAX_LENGTH = 1_000
const render = (template: string, body: unknown) =>
  renderTemplate(
    template,
    { _id: 'x', trigger: 'webhook', input: inputToLambdaRequest({ body, query: { page: '2' } }) },
    MAX_LENGTH,
  )

test('a template replaces {{path}} with the value of the input at any depth', () => {
  const body = { name: 'Ada', n: 0, no: false, none: null, list: [{ name: 'a' }, 'b'], 'a b': 1 }
  expect(render('{{body.name}}/{{query.page}}/{{method}}', body)).toBe('Ada/2/POST')
  expect(render('{{body.n}} {{body.no}} [{{body.none}}] [{{body.unknown.deep}}] [{{nothing}}]', body)).toBe(
    '0 false [] [] []',
  )
  expect(render('{{body.list.0.name}}{{body.list.1}}{{body.list.7}}', body)).toBe('ab')
  expect(render('{{body.list}}', body)).toBe('[{"name":"a"},"b"]')
  expect(render('{{#body.name}}Dear {{body.name}}{{/body.name}}{{^body.unknown}}!{{/body.unknown}}', body)).toBe(
    'Dear Ada!',
  )
})

test('a template keeps braces without a valid name as they are', () => {
  for (const text of [
    '{body.name}',
    '{{ body.name }}',
    '{{body name}}',
    '{{}}',
    `{{${'a'.repeat(201)}}}`,
    '{{body.name',
  ])
    expect(render(text, { name: 'Ada' })).toBe(text)
})

test('a template reads no inherited properties and does not expand values as templates', () => {
  for (const name of [
    'constructor',
    '__proto__',
    'body.__proto__',
    'body.constructor.name',
    'body.toString',
    'body.name.length',
  ])
    expect(render(`[{{${name}}}]`, { name: 'Ada' })).toBe('[]')
  expect(render('{{body.name}}', { name: '{{body.other}} {{method}}', other: 's3cret' })).toBe(
    '{{body.other}} {{method}}',
  )
  expect(render('{{body.name}}', { name: 'a\0b\ud800' })).toBe('ab\ufffd')
})

test('a template renders paths into values that are no objects as empty text', () => {
  for (const body of ['text', 7, null, undefined, ['a']]) expect(render('[{{body.name}}]', body)).toBe('[]')
  expect(render('{{body}}', 'text')).toBe('text')
  expect(render('{{body.0}}', ['a'])).toBe('a')
})

test('a template that repeats a long value is filled up to the limit, without building the whole text', () => {
  const before = process.memoryUsage.rss()
  const text = render('{{body.text}}'.repeat(7_000), { text: 'x'.repeat(1 << 20) })
  expect(text).toBe('x'.repeat(MAX_LENGTH))
  expect(process.memoryUsage.rss() - before).toBeLessThan(256 << 20)
})
