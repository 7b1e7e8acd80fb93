import { usePreference } from '../api/preferences'
import type { Field } from '../api/schema'
import { systemFields } from './system-fields'

/** More columns than these are shown when somebody chooses them. */
const MAX_DEFAULT_COLUMNS = 24

/** Which columns a person sees of a blueprint, in which order, and how wide. */
type Layout = {
  /** The columns in their order, when somebody chose them. */
  shown?: string[]
  /** The fields that there were when they chose; later ones are shown. */
  offered?: string[]
  widths?: Record<string, number>
}

/** Returns the columns of a list as a person arranged them, and functions that arrange them. */
export function useColumnLayout(blueprint: string, fields: Field[]) {
  const [layout, keepLayout] = usePreference<Layout>(`columns:${blueprint}`, {})
  const all: Field[] = [...fields, ...systemFields]
  const byKey = new Map(all.map((field) => [field.key, field]))
  const defaults = [...fields.slice(0, MAX_DEFAULT_COLUMNS).map(({ key }) => key), 'updated']
  const later = fields.map(({ key }) => key).filter((key) => layout.offered && !layout.offered.includes(key))
  const shown = layout.shown ? [...layout.shown, ...later].filter((key) => byKey.has(key)) : defaults
  const widths = layout.widths ?? {}
  return {
    /** All columns that there are: those shown in their order, then the others. */
    all: [...shown, ...all.map(({ key }) => key).filter((key) => !shown.includes(key))].map((key) => byKey.get(key)!),
    shown,
    widths,
    isChanged: !!layout.shown || Object.keys(widths).length > 0,
    show: (keys: string[]) => keepLayout({ ...layout, shown: keys, offered: fields.map(({ key }) => key) }),
    resize: (key: string, width: number) => keepLayout({ ...layout, widths: { ...widths, [key]: width } }),
    reset: () => keepLayout({}),
  }
}

/** The columns of a list as a person arranged them. */
export type ColumnLayout = ReturnType<typeof useColumnLayout>
