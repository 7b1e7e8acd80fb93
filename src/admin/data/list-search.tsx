import { TextInput } from '@mantine/core'
import { useDebouncedCallback, useHotkeys } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { useRef, useState } from 'react'

const TYPING_PAUSE_MS = 300

type ListSearchBoxProps = { name: string; words: string; onChange: (words: string) => void }

/** Searches the texts of a list's entities while somebody types. */
export function ListSearchBox({ name, words, onChange }: ListSearchBoxProps) {
  const [typed, setTyped] = useState(words)
  const [applied, setApplied] = useState(words)
  const box = useRef<HTMLInputElement>(null)
  const applyLater = useDebouncedCallback(onChange, TYPING_PAUSE_MS)
  useHotkeys([['/', () => box.current?.focus()]])
  // The search was removed elsewhere, or the address changed.
  if (applied !== words) {
    setApplied(words)
    if (typed.trim() !== words) setTyped(words)
  }
  return (
    <TextInput
      ref={box}
      size="xs"
      type="search"
      aria-label={`Search ${name}`}
      placeholder="Search"
      leftSection={<IconSearch size={14} />}
      value={typed}
      onChange={(event) => {
        setTyped(event.currentTarget.value)
        applyLater(event.currentTarget.value.trim())
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter') onChange(typed.trim())
        if (event.key === 'Escape') box.current?.blur()
      }}
    />
  )
}
