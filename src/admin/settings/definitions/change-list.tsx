import { Anchor, Group } from '@mantine/core'
import { useState } from 'react'
import { CodeDiff } from '../../ui/code-diff'
import { RowList } from '../../ui/row-list'
import { StateTag } from '../../ui/state-tag'
import { type DefinitionChange, type DefinitionFolder, pairTexts } from './definition-folder'
import classes from './definitions.module.css'

const tones = { create: 'good', change: 'neutral', rename: 'neutral', remove: 'bad' } as const
const actions = {
  planned: { create: 'Create', change: 'Change', rename: 'Rename', remove: 'Remove' },
  done: { create: 'Created', change: 'Changed', rename: 'Renamed', remove: 'Removed' },
}

/** Returns whether a change removes something, which cannot be brought back. */
export const isDestructive = ({ action, details = [] }: DefinitionChange) =>
  action === 'remove' || details.some((detail) => detail.startsWith('removes '))

type Sides = Record<'before' | 'after', DefinitionFolder['files']>
type ChangeListProps = {
  label: string
  changes: DefinitionChange[]
  isDone?: boolean
  /** The files of both sides, to compare their texts. */
  sides?: Sides
}

/** Changes of definitions, with what they concern and, on demand, the difference of the texts. */
export const ChangeList = ({ label, changes, isDone, sides }: ChangeListProps) => (
  <RowList
    label={label}
    rows={changes.map((change, index) => ({ change, index }))}
    rowKey={({ index }) => `${index}`}
    empty="Nothing would change."
    render={({ change }) => ({
      title: (
        <Group gap="xs">
          <StateTag
            label={actions[isDone ? 'done' : 'planned'][change.action]}
            tone={tones[change.action] === 'neutral' && isDestructive(change) ? 'warning' : tones[change.action]}
          />
          <span>
            {change.kind} {change.name}
          </span>
        </Group>
      ),
      text: (
        <>
          {[countEntities(change), ...(change.details ?? [])].filter(Boolean).join('; ')}
          {sides && <TextDifference change={change} sides={sides} />}
        </>
      ),
    })}
  />
)

export const countEntities = ({ entities }: DefinitionChange) =>
  entities === undefined ? '' : `${entities.toLocaleString()} ${entities === 1 ? 'entity' : 'entities'}`

function TextDifference({ change, sides }: { change: DefinitionChange; sides: Sides }) {
  const [isOpen, setIsOpen] = useState(false)
  const pairs = isOpen ? pairTexts(change, sides.before, change.action === 'remove' ? {} : sides.after) : []
  return (
    <div>
      <Anchor
        component="button"
        type="button"
        size="xs"
        underline="always"
        aria-expanded={isOpen}
        aria-label={`${isOpen ? 'Hide' : 'Compare'} the texts of ${change.kind} ${change.name}`}
        onClick={() => setIsOpen(!isOpen)}
      >
        {isOpen ? 'Hide the texts' : 'Compare the texts'}
      </Anchor>
      {isOpen && (
        <div className={classes.texts}>
          {pairs.map(({ path, ...pair }) => (
            <div key={path}>
              <p className={classes.path}>{path}</p>
              <CodeDiff {...pair} label={`The difference of ${path}`} />
            </div>
          ))}
          {!pairs.length && <p className={classes.path}>The texts are the same; a secret differs.</p>}
        </div>
      )}
    </div>
  )
}
