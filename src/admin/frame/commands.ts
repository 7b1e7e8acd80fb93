import {
  IconBook,
  IconCircleDot,
  IconDatabase,
  IconPlus,
  IconTable,
  IconUser,
  type TablerIcon,
} from '@tabler/icons-react'
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query'
import { blueprintsQuery } from '../api/queries'
import type { Blueprint, Me } from '../api/schema'
import { toEntityLabel } from '../data/entity-label'
import { entitySearchQuery } from '../data/entity-queries'
import { toUserLabel, userSearchQuery } from '../people/user-queries'
import { filterPages, listSections } from '../sections'
import { ACCOUNT_PAGES, BLUEPRINT_ACTIONS, DOCUMENTS } from './command-catalog'
import type { Page, Section } from './section'

/** Something that the palette finds, and where it leads: a route of the page, or another address (`href`). */
export type Command = {
  id: string
  label: string
  description?: string
  /** Further words by which it is found. */
  keywords?: string
  icon: TablerIcon
  to?: string
  search?: Record<string, string>
  hash?: string
  href?: string
}

/** Commands of one kind, such as screens or users. */
export type CommandGroup = {
  label: string
  commands: Command[]
  /** Whether an earlier text has found them. */
  isStale?: boolean
}

/** Entities are searched in so many blueprints, the first by name, because each is a request. */
const MAX_SEARCHED_BLUEPRINTS = 8

/** Returns the commands that have all words, those first that have them in the label. */
function findCommands(commands: Command[], words: string): Command[] {
  const all = words.toLowerCase().split(/\s+/)
  const has = (text: string) => all.every((word) => text.toLowerCase().includes(word))
  const found = commands.filter(({ label, keywords = '' }) => has(`${label} ${keywords}`))
  return [...found.filter(({ label }) => has(label)), ...found.filter(({ label }) => !has(label))]
}

const toScreenCommand = ({ label: section, icon }: Pick<Section, 'label' | 'icon'>, page: Page): Command => ({
  id: `screen:${page.path}:${page.label}`,
  label: page.label === section ? section : `${section}: ${page.label}`,
  ...{ keywords: page.keywords, icon, to: page.path, search: page.search },
})

const toActionCommand = ({ label, path, keywords }: Page): Command => ({
  id: `action:${path}`,
  ...{ label, keywords, icon: IconPlus, to: path },
})

const toBlueprintCommands = ({ key, name }: Blueprint): Command[] => [
  { id: `blueprint:${key}`, label: name, icon: IconDatabase, to: `/data/${key}` },
  { id: `new:${key}`, label: `New in ${name}`, keywords: 'create add', icon: IconPlus, to: `/data/${key}/all/new` },
]

const toBlueprintActions = ({ key, name }: Blueprint, roles: readonly string[]): Command[] =>
  filterPages(BLUEPRINT_ACTIONS, roles).map(({ toLabel, path, hash, keywords }) => ({
    id: `${path}${hash ?? ''}:${key}`,
    ...{ label: toLabel(name), keywords, icon: IconTable, to: `/data/${key}${path}`, hash },
  }))

/** Returns the entities and users that a search at the server finds. Without words there are none. */
function useFoundRecords(me: Me, blueprints: Blueprint[], words: string): CommandGroup[] {
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
  if (!words) return []
  const entities = found.flatMap(({ data = [] }, index) =>
    data.map((entity): Command => {
      const { key, name } = blueprints[index]!
      const to = `/data/${key}/${encodeURIComponent(entity.identifier)}`
      const id = `entity:${key}:${entity.identifier}`
      return { id, label: toEntityLabel(entity), description: name, icon: IconCircleDot, to }
    }),
  )
  const people = users.map((user) => ({
    id: `user:${user._id}`,
    ...{ label: toUserLabel(user), description: user.email, icon: IconUser, to: `/people/users/${user._id}` },
  }))
  return [
    { label: 'Entities', commands: entities, isStale: found.some(({ isPlaceholderData }) => isPlaceholderData) },
    { label: 'Users', commands: people },
  ]
}

/**
 * Returns what the words find, by kind. Actions, screens, blueprints and documents are found by their names and
 * keywords at once, entities and users by a search for `searchedWords`.
 */
export function useCommands(me: Me, words: string, searchedWords: string): CommandGroup[] {
  const { data: blueprints = [] } = useQuery(blueprintsQuery)
  const records = useFoundRecords(me, blueprints, words && searchedWords)
  const sections = listSections(me.roles)
  const screens = sections.flatMap((section) => section.pages.map((page) => toScreenCommand(section, page)))
  const account = ACCOUNT_PAGES.map((page) => toScreenCommand({ label: 'Your account', icon: IconUser }, page))
  const actions = [
    ...sections.flatMap((section) => section.actions ?? []).map(toActionCommand),
    ...blueprints.flatMap((blueprint) => toBlueprintActions(blueprint, me.roles)),
  ]
  const documents = filterPages(DOCUMENTS, me.roles).map(
    (document): Command => ({ ...document, id: document.href, icon: IconBook }),
  )
  return [
    { label: 'Screens', commands: findCommands(words ? [...screens, ...account] : screens, words) },
    { label: 'Blueprints', commands: findCommands(blueprints.flatMap(toBlueprintCommands), words) },
    { label: 'Actions', commands: words ? findCommands(actions, words) : [] },
    ...records,
    { label: 'Documents', commands: words ? findCommands(documents, words) : [] },
  ]
}
