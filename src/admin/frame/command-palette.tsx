import '@mantine/spotlight/styles.css'
import { Modal, VisuallyHidden } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { Spotlight, spotlight } from '@mantine/spotlight'
import { useNavigate } from '@tanstack/react-router'
import { type KeyboardEvent, useEffect } from 'react'
import { useObservable } from '../api/observable'
import type { Me } from '../api/schema'
import classes from './command-palette.module.css'
import { type Command, useCommands } from './commands'
import { isEntered, paletteQuery } from './palette-state'

const SEARCH_DELAY_MS = 150
const MAX_COMMANDS_OF_A_GROUP = 8

/** Finds actions, screens, blueprints, entities, users and documents by what is typed. It opens when it is shown. */
export function CommandPalette({ me }: { me: Me }) {
  const query = useObservable(paletteQuery)
  const entered = useObservable(isEntered)
  const words = query.trim()
  const [searchedWords] = useDebouncedValue(words, SEARCH_DELAY_MS)
  const navigate = useNavigate()
  const groups = useCommands(me, words, searchedWords).filter(({ commands }) => commands.length > 0)
  const first = groups[0]?.commands[0]
  const isStale = words !== searchedWords || groups.some((group) => group.isStale)

  const run = ({ to, search, hash, href }: Command) => {
    if (href) open(href, '_blank', 'noopener')
    else void navigate({ to, hash, search: (search ?? {}) as never })
  }
  useEffect(() => spotlight.open(), [])
  useEffect(() => {
    if (!entered || !first || isStale) return
    isEntered.set(false)
    spotlight.close()
    run(first)
  })
  // What is shown may still be what an earlier text has found.
  const handleKey = (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return
    const isFound = !isStale && paletteQuery.get().trim() === words
    if (isFound && document.querySelector('[data-action][data-selected]')) return
    event.preventDefault()
    event.stopPropagation()
    isEntered.set(true)
  }
  const changeQuery = (text: string) => {
    isEntered.set(false)
    paletteQuery.set(text)
  }

  return (
    <Spotlight.Root
      query={query}
      onQueryChange={changeQuery}
      shortcut={null}
      centered={false}
      yOffset="12vh"
      overlayProps={{ blur: 0, backgroundOpacity: 0.35 }}
      transitionProps={{ duration: 0 }}
      classNames={{ actionsGroup: classes.group }}
      scrollable
      maxHeight="60vh"
    >
      <VisuallyHidden>
        <Modal.Title>Find anything</Modal.Title>
      </VisuallyHidden>
      <Spotlight.Search
        placeholder="Actions, screens, settings, entities, users"
        aria-label="Find anything"
        onKeyDownCapture={handleKey}
      />
      <Spotlight.ActionsList>
        {groups.map(({ label, commands }) => (
          <Spotlight.ActionsGroup key={label} label={label}>
            {commands.slice(0, MAX_COMMANDS_OF_A_GROUP).map((command) => (
              <Spotlight.Action
                key={command.id}
                label={command.label}
                description={command.description}
                leftSection={<command.icon size={18} stroke={1.6} aria-hidden />}
                onClick={() => run(command)}
              />
            ))}
          </Spotlight.ActionsGroup>
        ))}
        {groups.length === 0 && <Spotlight.Empty>No results for “{words}”</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  )
}
