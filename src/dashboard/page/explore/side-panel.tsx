// The starting points beside the editor: relations with their columns, the cookbook's questions, and earlier queries.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import cookbook from "../../../../docs/cookbook.md";
import type { ApiAnswers } from "../../api-answers.ts";
import { type LiveAnswer, Reading } from "../shared/live.tsx";
import { SearchField, TabList } from "../shared/page.tsx";
import { readHistory } from "./query-tabs.tsx";
import { parseCookbook } from "./statements.ts";

const HISTORY_TITLE_CHARS = 120;

export const questions = parseCookbook(cookbook);

type SchemaGroups = ApiAnswers["schema"];
export type Relation = SchemaGroups[number]["relations"][number];
type RelationActions = Readonly<Record<"onSelect" | "onInsert", (text: string) => void>>;

const matches = ({ name, columns }: Relation, text: string) =>
  name.includes(text) || columns.some((column) => column.name.includes(text));

type RelationItemProps = RelationActions & { readonly relation: Relation; readonly text: string };

function RelationItem({ relation, text, onSelect, onInsert }: RelationItemProps) {
  const { name, summary, columns } = relation;
  const isFound = text !== "" && !name.includes(text);
  const [isOpen, setOpen] = useState(isFound);
  return (
    <details data-relation={name} open={isFound} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{name}</summary>
      <p class="soft">
        {`${summary} `}
        <button type="button" onClick={() => onSelect(`SELECT * FROM ${name} LIMIT 100`)} children="Query" />
      </p>
      {isOpen && (
        <dl>
          {columns.map((column) => (
            <>
              <dt>
                <button type="button" title="Insert" onClick={() => onInsert(column.name)}>
                  {column.name}
                </button>
                <span class="soft">{` ${column.type}`}</span>
              </dt>
              <dd class="soft">{column.meaning}</dd>
            </>
          ))}
        </dl>
      )}
    </details>
  );
}

function Relations({ groups, text, ...actions }: { groups: SchemaGroups; text: string } & RelationActions) {
  const shown = groups
    .map((group) => ({ ...group, relations: group.relations.filter((one) => matches(one, text)) }))
    .filter(({ relations }) => relations.length > 0);
  if (shown.length === 0) return <p class="soft empty">Nothing has this name.</p>;
  return shown.map(({ title, relations }) => (
    <>
      <h2 class="small">{title}</h2>
      {relations.map((relation) => (
        <RelationItem key={`${relation.name} ${text}`} relation={relation} text={text} {...actions} />
      ))}
    </>
  ));
}

const panels = { relations: "Relations", questions: "Questions", history: "History" };

type SidePanelProps = RelationActions & { readonly schema: LiveAnswer<SchemaGroups> };

export function SidePanel({ schema, onSelect, onInsert }: SidePanelProps) {
  const [panel, setPanel] = useState<keyof typeof panels>("relations");
  const [text, setText] = useState("");
  const history = readHistory();
  const contents: Readonly<Record<keyof typeof panels, () => ComponentChildren>> = {
    relations: () => (
      <>
        <SearchField
          {...{ id: "find-relation", label: "Find a relation or column", value: text }}
          onChoose={setText}
        />
        <div id="relation-list">
          <Reading of={[schema]}>
            {(groups) => <Relations {...{ groups, onSelect, onInsert }} text={text.trim().toLowerCase()} />}
          </Reading>
        </div>
      </>
    ),
    questions: () => (
      <ol id="question-list">
        {questions.map(({ title, sql }) => (
          <li key={title}>
            <button type="button" onClick={() => onSelect(sql)} children={title.replace(/^\d+\. /, "")} />
          </li>
        ))}
      </ol>
    ),
    history: () =>
      history.length > 0 ? (
        <ol id="history-list">
          {history.map(({ sql, note = "", at = "" }) => (
            <li key={sql}>
              <button type="button" title={sql} onClick={() => onSelect(sql)}>
                <code>{sql.replaceAll(/\s+/g, " ").slice(0, HISTORY_TITLE_CHARS)}</code>
              </button>
              <span class="soft">{`${at.slice(0, 16).replace("T", " ")} · ${note}`}</span>
            </li>
          ))}
        </ol>
      ) : (
        <p class="soft empty" id="no-history">
          Queries that you run are listed here. They stay in this browser.
        </p>
      ),
  };
  return (
    <aside class="card" aria-label="Starting points">
      <TabList
        {...{ id: "starting-points", label: "Starting points", names: panels, value: panel }}
        {...{ controls: "starting-point", onChoose: setPanel }}
      />
      <div role="tabpanel" id="starting-point" aria-labelledby={`tab-${panel}`}>
        {contents[panel]()}
      </div>
    </aside>
  );
}
