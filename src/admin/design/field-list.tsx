import {
  closestCenter,
  DndContext,
  type DragEndEvent,
  KeyboardSensor,
  PointerSensor,
  useSensor,
  useSensors,
} from '@dnd-kit/core'
import { arrayMove, SortableContext, sortableKeyboardCoordinates, verticalListSortingStrategy } from '@dnd-kit/sortable'
import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { type ReactNode, useCallback, useMemo, useState } from 'react'
import type { ProblemDetail } from '../api/problem'
import { type DraftField, newFieldId } from './design-draft'
import { FieldRow } from './field-row'
import classes from './fields.module.css'

type FieldListProps = {
  fields: DraftField[]
  /** Its identity stays, so that only the rows that changed are rendered again. */
  updateFields(change: (fields: DraftField[]) => DraftField[]): void
  onRename?(id: string, key: string): void
  /** Asks before a field goes. Without it, the field goes at once. */
  confirmRemoval?(field: DraftField): Promise<boolean>
  flaws: ProblemDetail[]
  /** Whether the key and the type of each field can be changed without opening it. */
  isInline?: boolean
  /** What stands beside the button that adds a field. */
  children?: ReactNode
}

const NO_FLAWS: ProblemDetail[] = []

/** The fields of a blueprint in their order, which dragging changes. Each opens its options in place. */
export function FieldList({
  fields,
  updateFields,
  onRename,
  confirmRemoval,
  flaws,
  isInline,
  children,
}: FieldListProps) {
  const [openIds, setOpenIds] = useState<ReadonlySet<string>>(new Set())
  const [addedId, setAddedId] = useState<string>()
  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: 4 } }),
    useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates }),
  )
  const move = ({ active, over }: DragEndEvent) => {
    if (!over || active.id === over.id) return
    updateFields((all) => {
      const indexOf = (id: unknown) => all.findIndex((field) => field.id === id)
      return arrayMove(all, indexOf(active.id), indexOf(over.id))
    })
  }
  const change = useCallback(
    (id: string, part: Partial<DraftField>) => {
      const { key, ...rest } = part
      if (key !== undefined && onRename) onRename(id, key)
      const applied = onRename ? rest : part
      if (Object.keys(applied).length)
        updateFields((all) => all.map((field) => (field.id === id ? { ...field, ...applied } : field)))
    },
    [updateFields, onRename],
  )
  const toggle = useCallback((id: string) => {
    setOpenIds((open) => {
      const next = new Set(open)
      if (!next.delete(id)) next.add(id)
      return next
    })
  }, [])
  const remove = useCallback(
    async (field: DraftField) => {
      if (confirmRemoval && !(await confirmRemoval(field))) return
      updateFields((all) => all.filter(({ id }) => id !== field.id))
    },
    [updateFields, confirmRemoval],
  )
  const add = useCallback(() => {
    const id = newFieldId()
    updateFields((all) => [...all, { id, key: '', type: 'string' }])
    setAddedId(id)
    if (!isInline) setOpenIds((open) => new Set(open).add(id))
  }, [updateFields, isInline])
  // The same list as before, unless fields come, go or move: each row follows it.
  const order = fields.map(({ id }) => id).join(' ')
  const ids = useMemo(() => order.split(' ').filter(Boolean), [order])
  const flawsOf = (id: string) => {
    const own = flaws.filter(({ path }) => path === `/fields/${id}` || path.startsWith(`/fields/${id}/`))
    return own.length ? own : NO_FLAWS
  }
  return (
    <div>
      <DndContext sensors={sensors} collisionDetection={closestCenter} onDragEnd={move}>
        <SortableContext items={ids} strategy={verticalListSortingStrategy}>
          <ol className={classes.list} aria-label="Fields">
            {fields.map((field, index) => (
              <FieldRow
                key={field.id}
                field={field}
                number={index + 1}
                isInline={isInline}
                isOpen={openIds.has(field.id)}
                isAdded={field.id === addedId}
                siblings={openIds.has(field.id) ? fields : undefined}
                flaws={flaws.length ? flawsOf(field.id) : NO_FLAWS}
                onChange={change}
                onToggle={toggle}
                onRemove={remove}
                onAddNext={isInline ? add : undefined}
              />
            ))}
          </ol>
        </SortableContext>
      </DndContext>
      <div className={classes.foot}>
        <Button variant="subtle" leftSection={<IconPlus size={14} />} onClick={add}>
          Add field
        </Button>
        {children}
      </div>
    </div>
  )
}
