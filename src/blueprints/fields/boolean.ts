import { fieldType } from './type'

const written = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

export const boolean = fieldType<boolean>({
  typescript: 'boolean',
  check: (value) => (typeof value === 'boolean' ? undefined : 'must be true or false'),
  key: (value) => (value ? 'true' : 'false'),
  value: (key) => key === 'true',
  parse: (text) => written.get(text),
})
