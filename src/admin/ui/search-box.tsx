import { TextInput } from '@mantine/core'
import { useDebouncedCallback, useHotkeys } from '@mantine/hooks'
import { IconSearch } from '@tabler/icons-react'
import { useEffect, useRef } from 'react'

const TYPING_PAUSE_MS = 250

type SearchBoxProps = { label: string; value?: string; onSearch: (words: string) => void }

/** Searches a list while somebody types. The key / leads to it. */
export function SearchBox({ label, value = '', onSearch }: SearchBoxProps) {
  const input = useRef<HTMLInputElement>(null)
  const search = useDebouncedCallback(onSearch, TYPING_PAUSE_MS)
  useHotkeys([['/', () => input.current?.focus()]])
  useEffect(() => {
    // What somebody types goes before what the address says.
    if (input.current && document.activeElement !== input.current) input.current.value = value
  }, [value])
  return (
    <TextInput
      ref={input}
      type="search"
      size="xs"
      aria-label={label}
      placeholder="Search"
      leftSection={<IconSearch size={14} />}
      defaultValue={value}
      onChange={(event) => search(event.currentTarget.value)}
    />
  )
}
