import {
  closestCenter,
  DndContext,
  type DragEndEvent,
  KeyboardSensor,
  PointerSensor,
  useSensor,
  useSensors,
} from '@dnd-kit/core'
import {
  arrayMove,
  SortableContext,
  sortableKeyboardCoordinates,
  useSortable,
  verticalListSortingStrategy,
} from '@dnd-kit/sortable'
import { CSS } from '@dnd-kit/utilities'
import { Button, Checkbox, Group, ScrollArea, TextInput } from '@mantine/core'
import { IconGripVertical } from '@tabler/icons-react'
import { useState } from 'react'
import type { Field } from '../api/schema'
import type { ColumnLayout } from './column-layout'
import classes from './column-list.module.css'

const MIN_SEARCHED_COLUMNS = 12

const labelOf = ({ key, title }: Field) => title || key

/** The columns of a list with a box for each; they are put in order by dragging, or by Space and arrows. */
export function ColumnList({ layout }: { layout: ColumnLayout }) {
  const [search, setSearch] = useState('')
  const { all, shown } = layout
  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: 4 } }),
    useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates }),
  )
  const words = search.toLowerCase()
  const listed = all.filter((field) => !words || `${labelOf(field)} ${field.key}`.toLowerCase().includes(words))
  const toggle = (key: string) =>
    layout.show(shown.includes(key) ? shown.filter((each) => each !== key) : [...shown, key])
  const move = ({ active, over }: DragEndEvent) => {
    const [from, to] = [shown.indexOf(String(active.id)), shown.indexOf(String(over?.id))]
    if (from >= 0 && to >= 0 && from !== to) layout.show(arrayMove(shown, from, to))
  }
  return (
    <div className={classes.list}>
      {all.length > MIN_SEARCHED_COLUMNS && (
        <TextInput
          size="xs"
          mb={4}
          aria-label="Find a column"
          placeholder="Find a column"
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      <ScrollArea.Autosize mah={360} type="auto">
        <DndContext sensors={sensors} collisionDetection={closestCenter} onDragEnd={move}>
          <SortableContext items={shown} strategy={verticalListSortingStrategy}>
            {listed.map((field) => (
              <ColumnItem
                key={field.key}
                field={field}
                isShown={shown.includes(field.key)}
                isLast={shown.length === 1}
                onToggle={() => toggle(field.key)}
              />
            ))}
          </SortableContext>
        </DndContext>
      </ScrollArea.Autosize>
      <Group mt={4}>
        <Button variant="subtle" size="compact-xs" disabled={!layout.isChanged} onClick={layout.reset}>
          Reset
        </Button>
      </Group>
    </div>
  )
}

type ColumnItemProps = { field: Field; isShown: boolean; isLast: boolean; onToggle: () => void }

function ColumnItem({ field, isShown, isLast, onToggle }: ColumnItemProps) {
  const { attributes, listeners, setNodeRef, transform, transition } = useSortable({
    id: field.key,
    disabled: !isShown,
  })
  const label = labelOf(field)
  return (
    <div
      ref={setNodeRef}
      className={classes.item}
      style={{ transform: CSS.Transform.toString(transform && { ...transform, x: 0 }), transition }}
    >
      <Checkbox
        size="xs"
        label={<span className={classes.label}>{label}</span>}
        aria-label={label}
        checked={isShown}
        disabled={isShown && isLast}
        onChange={onToggle}
      />
      {isShown && (
        <button type="button" className={classes.grip} {...attributes} {...listeners} aria-label={`Move ${label}`}>
          <IconGripVertical size={14} aria-hidden />
        </button>
      )}
    </div>
  )
}
