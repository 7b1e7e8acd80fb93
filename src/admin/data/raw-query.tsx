import { Button, Group, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { ListSearch } from './entity-queries'
import { readQuery, writeQuery } from './filters'

type RawQueryProps = { search: ListSearch; onChange: (search: ListSearch) => void }

/** The query of a list as programs write it. */
export function RawQuery({ search, onChange }: RawQueryProps) {
  const written = writeQuery(search)
  const [text, setText] = useState(written)
  const [applied, setApplied] = useState(written)
  // The query was changed by a sentence, or by a column.
  if (applied !== written) {
    setApplied(written)
    setText(written)
  }
  const apply = (event: FormEvent) => {
    event.preventDefault()
    onChange(readQuery(text))
  }
  return (
    <form onSubmit={apply} style={{ width: '100%' }}>
      <Group gap={8} wrap="nowrap">
        <TextInput
          style={{ flex: 1 }}
          size="xs"
          ff="monospace"
          aria-label="Query"
          placeholder="worth[$gte]=50000&$sort=-worth"
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          autoFocus
        />
        <Button type="submit" variant="default">
          Apply
        </Button>
      </Group>
    </form>
  )
}
