import '@mantine/spotlight/styles.css'
import { Modal, VisuallyHidden } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { Spotlight, spotlight } from '@mantine/spotlight'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import type { Me } from '../api/schema'
import classes from './command-palette.module.css'
import { useCommands } from './commands'

const SEARCH_DELAY_MS = 150
const MAX_COMMANDS_OF_A_GROUP = 8

/** Finds screens, blueprints, entities and users by what is typed. It opens when it is shown. */
export function CommandPalette({ me }: { me: Me }) {
  const [query, setQuery] = useState('')
  const [words] = useDebouncedValue(query.trim(), SEARCH_DELAY_MS)
  const navigate = useNavigate()
  const groups = useCommands(me, words).filter(({ commands }) => commands.length > 0)
  useEffect(() => spotlight.open(), [])
  return (
    <Spotlight.Root
      query={query}
      onQueryChange={setQuery}
      shortcut={null}
      centered={false}
      yOffset="12vh"
      overlayProps={{ blur: 0, backgroundOpacity: 0.35 }}
      classNames={{ actionsGroup: classes.group }}
      scrollable
      maxHeight="60vh"
    >
      <VisuallyHidden>
        <Modal.Title>Find anything</Modal.Title>
      </VisuallyHidden>
      <Spotlight.Search placeholder="Screens, blueprints, entities, users" aria-label="Find anything" />
      <Spotlight.ActionsList>
        {groups.map(({ label, commands }) => (
          <Spotlight.ActionsGroup key={label} label={label}>
            {commands.slice(0, MAX_COMMANDS_OF_A_GROUP).map((command) => (
              <Spotlight.Action
                key={command.id}
                label={command.label}
                description={command.description}
                leftSection={<command.icon size={18} stroke={1.6} aria-hidden />}
                onClick={() => navigate({ to: command.to })}
              />
            ))}
          </Spotlight.ActionsGroup>
        ))}
        {groups.length === 0 && <Spotlight.Empty>Nothing has this name.</Spotlight.Empty>}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  )
}
