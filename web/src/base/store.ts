// A small store on this device: IndexedDB, or memory where the browser forbids that (then it lasts as long as the page).

const DATABASE = "inkstone";
const VERSION = 1;

export interface Stored {
  id: number;
}

/** Version 1 has the rewrites; a later kind of record is added here with the next version. */
function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(DATABASE, VERSION);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore("rewrites", { keyPath: "id", autoIncrement: true });
    };
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error ?? new Error("IndexedDB"));
    opening.onblocked = () => reject(new Error("IndexedDB is blocked"));
  });
}

let database: Promise<IDBDatabase | null> | null = null;

function connection(): Promise<IDBDatabase | null> {
  database ??= openDatabase().catch(() => null);
  return database;
}

export class Store<T extends Stored> {
  private memory = new Map<number, T>();
  private next = 1;

  constructor(private readonly name: string) {}

  private async ask<R>(mode: IDBTransactionMode, what: (s: IDBObjectStore) => IDBRequest<R>): Promise<R | undefined> {
    const db = await connection();
    if (!db) return undefined;
    return new Promise((resolve, reject) => {
      const request = what(db.transaction(this.name, mode).objectStore(this.name));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error ?? new Error("IndexedDB"));
    });
  }

  /** Stores a new record and returns its id. */
  async add(record: Omit<T, "id">): Promise<number> {
    const id = (await this.ask("readwrite", (s) => s.add(record)).catch(() => undefined)) as number | undefined;
    if (id !== undefined) return id;
    const own = this.next++;
    this.memory.set(own, { ...record, id: own } as T);
    return own;
  }

  async put(record: T): Promise<void> {
    if (this.memory.has(record.id)) this.memory.set(record.id, record);
    else await this.ask("readwrite", (s) => s.put(record)).catch(() => undefined);
  }

  async get(id: number): Promise<T | undefined> {
    return this.memory.get(id) ?? ((await this.ask("readonly", (s) => s.get(id)).catch(() => undefined)) as T | undefined);
  }

  /** All records, newest first. */
  async all(): Promise<T[]> {
    const stored = ((await this.ask("readonly", (s) => s.getAll()).catch(() => undefined)) ?? []) as T[];
    return [...this.memory.values(), ...stored].sort((a, b) => b.id - a.id);
  }

  async remove(id: number): Promise<void> {
    if (!this.memory.delete(id)) await this.ask("readwrite", (s) => s.delete(id)).catch(() => undefined);
  }

  async clear(): Promise<void> {
    this.memory.clear();
    await this.ask("readwrite", (s) => s.clear()).catch(() => undefined);
  }
}
