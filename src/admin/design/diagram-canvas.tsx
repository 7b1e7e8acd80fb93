import '@xyflow/react/dist/style.css'
import { useComputedColorScheme } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { Background, Controls, Handle, MarkerType, type NodeProps, Position, ReactFlow } from '@xyflow/react'
import { useMemo } from 'react'
import type { Blueprint } from '../api/schema'
import { fieldKinds } from '../fields'
import classes from './diagram.module.css'
import { type BlueprintNode, layOutBlueprints } from './diagram-layout'

/** The box of a blueprint, whose title opens it. */
function BlueprintBox({ data: { blueprint, fields, hiddenCount } }: NodeProps<BlueprintNode>) {
  return (
    <div className={classes.box}>
      <Handle type="target" position={Position.Left} className={classes.handle} isConnectable={false} />
      <Link
        to="/data/$blueprint/all/design"
        params={{ blueprint: blueprint.key } as never}
        className={`${classes.title} nodrag nopan`}
        title={blueprint.name}
      >
        <bdi>{blueprint.name}</bdi>
      </Link>
      <ul className={classes.fields}>
        {fields.map((field) => {
          const { icon: Icon, label } = fieldKinds[field.type]
          return (
            <li key={field.key} className={classes.field}>
              <Icon size={14} stroke={1.6} aria-label={label} />
              <bdi>{field.key}</bdi>
              {field.required && <span title="required">*</span>}
              {field.target && (
                <Handle
                  type="source"
                  id={field.key}
                  position={Position.Right}
                  className={classes.handle}
                  isConnectable={false}
                />
              )}
            </li>
          )
        })}
        {hiddenCount > 0 && <li className={classes.field}>and {hiddenCount.toLocaleString()} more</li>}
      </ul>
      <Handle type="source" position={Position.Right} className={classes.handle} isConnectable={false} />
    </div>
  )
}

const nodeTypes = { blueprint: BlueprintBox }
const markerEnd = { type: MarkerType.ArrowClosed }

/** Blueprints as boxes, and their relations as arrows. Boxes can be moved and zoomed. */
export function DiagramCanvas({ blueprints }: { blueprints: readonly Blueprint[] }) {
  const scheme = useComputedColorScheme('light')
  const { nodes, edges } = useMemo(() => layOutBlueprints(blueprints), [blueprints])
  return (
    <div className={classes.canvas}>
      <ReactFlow
        defaultNodes={nodes}
        defaultEdges={edges}
        nodeTypes={nodeTypes}
        defaultEdgeOptions={{ markerEnd, focusable: false, type: 'smoothstep' }}
        colorMode={scheme}
        nodesFocusable={false}
        nodesConnectable={false}
        deleteKeyCode={null}
        minZoom={0.1}
        fitView
        fitViewOptions={{ maxZoom: 1, padding: 0.1 }}
        onlyRenderVisibleElements
        proOptions={{ hideAttribution: true }}
        aria-label="Diagram of blueprints"
      >
        <Background />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  )
}
