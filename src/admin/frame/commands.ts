import { IconCircleDot, IconDatabase, IconPlus, IconUser, type TablerIcon } from '@tabler/icons-react'
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query'
import { blueprintsQuery } from '../api/queries'
import type { Blueprint, Me } from '../api/schema'
import { toEntityLabel } from '../data/entity-label'
import { entitySearchQuery } from '../data/entity-queries'
import { toUserLabel, userSearchQuery } from '../people/user-queries'
import { listSections } from '../sections'

/** Something that the palette finds, and where it leads. */
export type Command = { id: string; label: string; description?: string; icon: TablerIcon; to: string }

/** Commands of one kind, such as screens or users. */
export type CommandGroup = { label: string; commands: Command[] }

/** Entities are searched in so many blueprints, the first by name, because each is a request. */
const MAX_SEARCHED_BLUEPRINTS = 8

const matches = (text: string, words: string) =>
  words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.toLowerCase().includes(word))

const toBlueprintCommands = ({ key, name }: Blueprint): Command[] => [
  { id: `blueprint:${key}`, label: name, icon: IconDatabase, to: `/data/${key}` },
  { id: `new:${key}`, label: `New in ${name}`, icon: IconPlus, to: `/data/${key}/all/new` },
]

/** Returns what the words find, by kind: screens and blueprints by their names, entities and users by a search. */
export function useCommands(me: Me, words: string): CommandGroup[] {
  const { data: blueprints = [] } = useQuery(blueprintsQuery)
  const isAdmin = me.roles.includes('admin')
  const found = useQueries({
    queries: blueprints
      .slice(0, MAX_SEARCHED_BLUEPRINTS)
      .map(({ key }) => ({
        ...entitySearchQuery(key, words),
        enabled: words !== '',
        placeholderData: keepPreviousData,
      })),
  })
  const { data: users = [] } = useQuery({ ...userSearchQuery(words), enabled: isAdmin && words !== '' })

  const screens = listSections(me.roles).flatMap(({ label, icon, pages }) =>
    pages.map(
      (page): Command => ({
        id: `screen:${page.path}`,
        label: page.label === label ? label : `${label}: ${page.label}`,
        icon,
        to: page.path,
      }),
    ),
  )
  const entities = found.flatMap(({ data = [] }, index) =>
    data.map((entity): Command => {
      const { key, name } = blueprints[index]!
      const to = `/data/${key}/${encodeURIComponent(entity.identifier)}`
      return {
        id: `entity:${key}:${entity.identifier}`,
        label: toEntityLabel(entity),
        description: name,
        icon: IconCircleDot,
        to,
      }
    }),
  )
  return [
    { label: 'Screens', commands: screens.filter(({ label }) => matches(label, words)) },
    {
      label: 'Blueprints',
      commands: blueprints.flatMap(toBlueprintCommands).filter(({ label }) => matches(label, words)),
    },
    { label: 'Entities', commands: words ? entities : [] },
    {
      label: 'Users',
      commands: words
        ? users.map((user) => ({
            id: `user:${user._id}`,
            label: toUserLabel(user),
            description: user.email,
            icon: IconUser,
            to: `/people/users/${user._id}`,
          }))
        : [],
    },
  ]
}
