import { JsonInput } from '@mantine/core'
import { IconBraces } from '@tabler/icons-react'
import { useState } from 'react'
import type { FieldKind, InputProps } from './field-kind'

/** An input for JSON. What is typed stays as it is until it can be read. */
function ObjectInput({ field: _, value, onChange, error, ...rest }: InputProps) {
  const [text, setText] = useState(() => (value === undefined || value === null ? '' : JSON.stringify(value, null, 2)))
  const [flaw, setFlaw] = useState<string>()
  const change = (typed: string) => {
    setText(typed)
    if (!typed.trim()) return onChange(undefined)
    try {
      onChange(JSON.parse(typed))
      setFlaw(undefined)
    } catch (cause) {
      setFlaw(`This is not JSON yet: ${(cause as Error).message}`)
    }
  }
  return <JsonInput {...rest} autosize minRows={3} maxRows={20} value={text} onChange={change} error={flaw ?? error} />
}

export const object: FieldKind = {
  label: 'Object',
  icon: IconBraces,
  operators: ['$exists'],
  width: 220,
  Cell: ({ value }) => (
    <code title={JSON.stringify(value, null, 2)?.slice(0, 2_000)}>{JSON.stringify(value)?.slice(0, 200)}</code>
  ),
  Input: ObjectInput,
}
