import { Anchor, Button, Text } from '@mantine/core'
import { useState } from 'react'
import type { Blueprint, Field } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showProblem } from '../ui/notices'
import classes from './bulk-bar.module.css'
import { BulkChangeDialog } from './bulk-change'
import { BulkProgressDialog } from './bulk-progress'
import { type BulkProgress, type BulkTarget, readTargets, toTarget } from './bulk-run'
import { countEntities, useBulkWork } from './bulk-work'
import type { ListSearch } from './entity-queries'
import type { Marks } from './marks'

type BulkBarProps = { blueprint: Blueprint; editable: Field[]; query: ListSearch; total: number; marks: Marks }

/** What can be done with the marked rows: change a field of them, or delete them. */
export function BulkBar({ blueprint, editable, query, total, marks }: BulkBarProps) {
  const [isChanging, setIsChanging] = useState(false)
  const work = useBulkWork(blueprint)
  const count = marks.isAll ? total : marks.rows.size
  const countText = countEntities(count, blueprint)
  const listTargets = (property?: string) =>
    marks.isAll
      ? readTargets(blueprint, query, property)
      : Promise.resolve([...marks.rows.values()].map((row) => toTarget(row, property)))
  const markRest = (targets: BulkTarget[], { done, failures }: BulkProgress) => {
    const rest = [...failures, ...targets.slice(done + failures.length)]
    marks.mark(new Set(rest.map(({ identifier }) => identifier)))
  }
  const change = async (field: Field, value: unknown) => {
    setIsChanging(false)
    try {
      const targets = await listTargets(field.key)
      const result = await work.change(targets, field, value)
      if (result && result.done < targets.length) markRest(targets, result)
    } catch (error) {
      showProblem(error)
    }
  }
  const remove = async () => {
    const isConfirmed = await confirmAction({
      title: `Delete ${countText}?`,
      text: 'They cannot be brought back.',
      action: `Delete ${countText}`,
      typedName: count > 1 ? blueprint.key : undefined,
    })
    if (!isConfirmed) return
    try {
      const targets = await listTargets()
      const result = await work.remove(targets)
      if (result) markRest(targets, result)
    } catch (error) {
      showProblem(error)
    }
  }
  return (
    <>
      {count > 0 && (
        <section className={classes.bar} aria-label="Marked rows">
          <Text size="sm" role="status">
            {count.toLocaleString()} marked
          </Text>
          {!marks.isAll && count < total && (
            <Anchor component="button" size="sm" onClick={marks.markAll}>
              Mark all {total.toLocaleString()} that match
            </Anchor>
          )}
          <span className={classes.space} />
          <Button variant="default" onClick={() => setIsChanging(true)} disabled={!editable.length}>
            Change a field of {countText}
          </Button>
          <Button variant="light" color="red" onClick={remove}>
            Delete {countText}
          </Button>
          <Button variant="subtle" color="gray" onClick={marks.clear}>
            Clear marks
          </Button>
        </section>
      )}
      {isChanging && (
        <BulkChangeDialog
          title={`Change a field of ${countText}`}
          action={`Change ${countText}`}
          fields={editable}
          onSubmit={change}
          onClose={() => setIsChanging(false)}
        />
      )}
      {work.progress && (
        <BulkProgressDialog blueprint={blueprint} progress={work.progress} onStop={work.stop} onClose={work.close} />
      )}
    </>
  )
}
