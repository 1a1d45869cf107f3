import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.sql.DriverManager;
import java.sql.Types;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.pinot.client.Connection;
import org.apache.pinot.client.ConnectionFactory;
import org.apache.pinot.client.JsonAsyncHttpPinotClientTransportFactory;
import org.apache.pinot.client.PinotClientTransport;
import org.apache.pinot.client.ResultSet;

/** Asks the questions of a file by JDBC, of Pinot or PostgreSQL, or by Pinot's client for Java; prints a line of JSON for each step. */
public final class Main {
  interface Rows {
    List<List<Object>> get() throws Exception;
  }

  private static final ObjectMapper JSON = new ObjectMapper();
  private static JsonNode asked;

  public static void main(String[] words) throws Exception {
    asked = JSON.readTree(new File(words[1]));
    try {
      if (words[0].equals("jdbc")) {
        byJdbc(Main::pinot, null);
      } else if (words[0].equals("simple") || words[0].equals("extended")) {
        byPostgres(words[0]);
      } else {
        byClient(words[0].equals("fromController"));
      }
    } catch (Exception error) {
      error.printStackTrace();
      System.exit(1);
    }
    // The client's threads are no daemons.
    System.exit(0);
  }

  interface Connecting {
    java.sql.Connection as(String who) throws Exception;
  }

  private static java.sql.Connection byJdbc(Connecting connecting, String schema) throws Exception {
    java.sql.Connection known = connecting.as("");
    step("connect", () -> rows(known, "SELECT 1"));
    step("tables", () -> named(known.getMetaData().getTables(null, schema, null, null), "TABLE_NAME"));
    step("columns", () -> named(known.getMetaData().getColumns(null, null, text("table"), null), "COLUMN_NAME"));
    for (String each : List.of("top", "series", "sum", "refused")) {
      step(each, () -> rows(known, text(each)));
    }
    step("exhausted", () -> rows(connecting.as("poor_"), text("top")));
    step("again", () -> rows(known, text("top")));
    step("parameter", () -> {
      java.sql.PreparedStatement statement = known.prepareStatement(text("prepared"));
      statement.setString(1, text("value"));
      return rows(statement.executeQuery());
    });
    return known;
  }

  private static void byPostgres(String mode) throws Exception {
    java.sql.Connection known = byJdbc(who -> {
      Properties properties = account(who);
      properties.setProperty("preferQueryMode", mode);
      return DriverManager.getConnection(text("jdbc_url"), properties);
    }, "public");
    step("list", () -> {
      java.sql.PreparedStatement statement = known.prepareStatement(text("listed"));
      statement.setArray(1, known.createArrayOf("text", new String[] {text("value")}));
      return rows(statement.executeQuery());
    });
    step("days", () -> {
      java.sql.PreparedStatement statement = known.prepareStatement(text("between"));
      statement.setTimestamp(1, java.sql.Timestamp.valueOf("2025-01-01 00:00:00"));
      statement.setObject(2, java.time.LocalDate.of(2026, 1, 1));
      return rows(statement.executeQuery());
    });
  }

  private static Properties account(String who) {
    Properties properties = new Properties();
    properties.setProperty("user", text(who + "account"));
    properties.setProperty("password", text(who + "token"));
    return properties;
  }

  private static java.sql.Connection pinot(String who) throws Exception {
    Properties properties = account(who);
    setTls(properties, "pinot.jdbc.tls");
    return DriverManager.getConnection("jdbc:pinot://" + text("place"), properties);
  }

  private static List<List<Object>> rows(java.sql.Connection connection, String sql) throws Exception {
    return rows(connection.createStatement().executeQuery(sql));
  }

  private static List<List<Object>> rows(java.sql.ResultSet found) throws Exception {
    List<List<Object>> rows = new ArrayList<>();
    while (found.next()) {
      List<Object> row = new ArrayList<>();
      for (int column = 1; column <= found.getMetaData().getColumnCount(); column++) {
        switch (found.getMetaData().getColumnType(column)) {
          case Types.INTEGER, Types.BIGINT -> row.add(found.getLong(column));
          case Types.DOUBLE -> row.add(found.getDouble(column));
          case Types.TIMESTAMP -> row.add(found.getTimestamp(column).toString());
          default -> row.add(found.getString(column));
        }
      }
      rows.add(row);
    }
    return rows;
  }

  private static List<List<Object>> named(java.sql.ResultSet found, String column) throws Exception {
    List<List<Object>> rows = new ArrayList<>();
    while (found.next()) {
      rows.add(List.of(found.getString(column)));
    }
    return rows;
  }

  private static void byClient(boolean asksController) throws Exception {
    Connection known = client(asksController, text("token"));
    step("connect", () -> rows(known, "SELECT 1"));
    for (String each : List.of("top", "series", "sum", "refused")) {
      step(each, () -> rows(known, text(each)));
    }
    step("exhausted", () -> rows(client(asksController, text("poor_token")), text("top")));
    step("again", () -> rows(known, text("top")));
    step("parameter", () -> {
      var statement = known.prepareStatement(text("prepared"));
      statement.setString(0, text("value"));
      return rows(statement.execute().getResultSet(0));
    });
  }

  private static Connection client(boolean asksController, String token) {
    Properties properties = new Properties();
    properties.setProperty("headers.Authorization", "Bearer " + token);
    setTls(properties, "pinot.java_client.tls");
    // Without a transport of its own, a connection sends the headers of the first one of the process.
    PinotClientTransport transport = new JsonAsyncHttpPinotClientTransportFactory()
        .withConnectionProperties(properties).buildTransport();
    return asksController
        ? ConnectionFactory.fromController(properties, text("place"), transport)
        : ConnectionFactory.fromHostList(properties, List.of(text("place")), transport);
  }

  private static void setTls(Properties properties, String prefix) {
    properties.setProperty("scheme", text("scheme"));
    if (text("scheme").equals("https")) {
      properties.setProperty(prefix + ".truststore.type", "PKCS12");
      properties.setProperty(prefix + ".truststore.path", text("truststore"));
      properties.setProperty(prefix + ".truststore.password", text("truststore_password"));
    }
  }

  private static List<List<Object>> rows(Connection connection, String sql) {
    return rows(connection.execute(sql).getResultSet(0));
  }

  private static List<List<Object>> rows(ResultSet found) {
    List<List<Object>> rows = new ArrayList<>();
    for (int at = 0; at < found.getRowCount(); at++) {
      List<Object> row = new ArrayList<>();
      for (int column = 0; column < found.getColumnCount(); column++) {
        switch (found.getColumnDataType(column)) {
          case "LONG" -> row.add(found.getLong(at, column));
          case "DOUBLE" -> row.add(found.getDouble(at, column));
          default -> row.add(found.getString(at, column));
        }
      }
      rows.add(row);
    }
    return rows;
  }

  private static String text(String name) {
    return asked.get(name).asText();
  }

  private static void step(String name, Rows rows) throws Exception {
    Map<String, Object> said = new LinkedHashMap<>();
    said.put("step", name);
    try {
      said.put("rows", rows.get());
    } catch (Exception error) {
      List<String> texts = new ArrayList<>();
      for (Throwable each = error; each != null; each = each.getCause()) {
        texts.add(String.valueOf(each));
      }
      said.put("error", String.join("\n", texts));
    }
    System.out.println(JSON.writeValueAsString(said));
  }
}
