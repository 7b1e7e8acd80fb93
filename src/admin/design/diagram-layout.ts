import { Graph, layout } from '@dagrejs/dagre'
import type { Edge, Node } from '@xyflow/react'
import type { Blueprint, Field } from '../api/schema'
import { listRelations } from './relations'

const NODE_WIDTH_PX = 220
const HEAD_HEIGHT_PX = 36
const ROW_HEIGHT_PX = 24
const MAX_FIELDS_SHOWN = 12

/** What one box of the diagram shows. */
export type BlueprintNode = Node<{ blueprint: Blueprint; fields: Field[]; hiddenCount: number }, 'blueprint'>

/** Returns the boxes and arrows of blueprints, with their positions from left to right. */
export function layOutBlueprints(blueprints: readonly Blueprint[]): { nodes: BlueprintNode[]; edges: Edge[] } {
  const relations = listRelations(blueprints)
  const graph = new Graph({ multigraph: true })
  graph.setGraph({ rankdir: 'LR', nodesep: 32, ranksep: 96 })
  graph.setDefaultEdgeLabel(() => ({}))
  const boxes = blueprints.map((blueprint) => {
    // Relations come first, because their arrows begin at them.
    const ordered = [...blueprint.fields].sort((a, b) => Number(!!b.target) - Number(!!a.target))
    const fields = ordered.slice(0, MAX_FIELDS_SHOWN)
    const hiddenCount = ordered.length - fields.length
    const height = HEAD_HEIGHT_PX + (fields.length + Number(hiddenCount > 0)) * ROW_HEIGHT_PX + 8
    graph.setNode(blueprint.key, { width: NODE_WIDTH_PX, height })
    return { blueprint, fields, hiddenCount, height }
  })
  for (const { from, field, to } of relations) if (from.key !== to.key) graph.setEdge(from.key, to.key, {}, field.key)
  layout(graph)
  const nodes = boxes.map(({ blueprint, fields, hiddenCount, height }): BlueprintNode => {
    const { x = 0, y = 0 } = graph.node(blueprint.key) as { x?: number; y?: number }
    return {
      id: blueprint.key,
      type: 'blueprint',
      position: { x: x - NODE_WIDTH_PX / 2, y: y - height / 2 },
      width: NODE_WIDTH_PX,
      height,
      data: { blueprint, fields, hiddenCount },
    }
  })
  const shownFieldIds = new Set(
    boxes.flatMap(({ blueprint, fields }) => fields.map(({ key }) => `${blueprint.key}.${key}`)),
  )
  const edges = relations.map(({ from, field, to }): Edge => {
    const id = `${from.key}.${field.key}`
    return {
      id,
      source: from.key,
      target: to.key,
      sourceHandle: shownFieldIds.has(id) ? field.key : null,
      label: field.title || field.key,
    }
  })
  return { nodes, edges }
}
