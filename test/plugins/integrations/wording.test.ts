import { expect, test } from 'bun:test'
import { worded } from '../../../src/plugins/integrations/wording'
import { askedFor } from '../../../src/plugins/lambdas/asked'

const say = (template: string, body: unknown) =>
  worded(template, { _id: 'x', trigger: 'webhook', asked: askedFor({ body, query: { page: '2' } }) })

test('what stands in braces is what came in, wherever it lies', () => {
  const body = { name: 'Ada', n: 0, no: false, none: null, list: [{ name: 'a' }, 'b'], 'a b': 1 }
  expect(say('{{body.name}}/{{query.page}}/{{method}}', body)).toBe('Ada/2/POST')
  expect(say('{{body.n}} {{body.no}} [{{body.none}}] [{{body.unknown.deep}}] [{{nothing}}]', body)).toBe(
    '0 false [] [] []',
  )
  expect(say('{{body.list.0.name}}{{body.list.1}}{{body.list.7}}', body)).toBe('ab')
  expect(say('{{body.list}}', body)).toBe('[{"name":"a"},"b"]')
  expect(say('{{#body.name}}Dear {{body.name}}{{/body.name}}{{^body.unknown}}!{{/body.unknown}}', body)).toBe(
    'Dear Ada!',
  )
})

test('what is no name in braces stays as it is written', () => {
  for (const text of [
    '{body.name}',
    '{{ body.name }}',
    '{{body name}}',
    '{{}}',
    `{{${'a'.repeat(201)}}}`,
    '{{body.name',
  ])
    expect(say(text, { name: 'Ada' })).toBe(text)
})

test('nobody gets at what is not theirs, nor has their own words read as a template', () => {
  for (const name of [
    'constructor',
    '__proto__',
    'body.__proto__',
    'body.constructor.name',
    'body.toString',
    'body.name.length',
  ])
    expect(say(`[{{${name}}}]`, { name: 'Ada' })).toBe('[]')
  expect(say('{{body.name}}', { name: '{{body.other}} {{method}}', other: 's3cret' })).toBe('{{body.other}} {{method}}')
  expect(say('{{body.name}}', { name: 'a\0b\ud800' })).toBe('ab\ufffd')
})

test('what is no object has no parts', () => {
  for (const body of ['text', 7, null, undefined, ['a']]) expect(say('[{{body.name}}]', body)).toBe('[]')
  expect(say('{{body}}', 'text')).toBe('text')
  expect(say('{{body.0}}', ['a'])).toBe('a')
})
